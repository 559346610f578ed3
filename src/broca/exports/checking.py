"""Compares the answers of an export in other libraries with those of broca's ablated model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from broca.errors import SelfTestFailed
from broca.exports.weights import Means
from broca.models import ActiveGates, GatedModel, greedy
from broca.results.export import ReloadCheck

NEW_TOKENS = 12
"""Number of tokens of each continuation."""

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Largest difference of log-probabilities, relative to their spread, that counts as equal."""

PROMPTS = (
    "The capital of France is", "2 + 2 =", "17 * 3 =", "Once upon a time there was",
    "The opposite of hot is", "def add(a, b):\n    return", "Water boils at", "A B C D E",
    "1, 2, 3, 4,", "Monday, Tuesday,", "The cat sat on the", "Q: Who wrote Hamlet?\nA:",
    "In the year 1969", "for i in range(10):", "She said that she", "cat -> chat, dog ->",
    "x", "The dogs that the man owns", "Red, green and", "SELECT name FROM", "Bonjour, je",
    "The sum of 12 and 30 is", "If it rains, then", "\n", "Hello! How are", "100 - 1 =",
    "The moon orbits the", "import numpy as", "He opened the door and", "Yes or no:",
    "3 < 5 is true, 5 < 3 is", "The end.",
)  # fmt: skip
"""The prompts: 32 short texts of several kinds."""


@dataclass(frozen=True)
class PromptAnswers:
    """The answers of a model to some prompts.

    Attributes:
        read: Log-probabilities at every token of each prompt, `(tokens, vocabulary)`.
        continued: Log-probabilities of the continuations, `(prompts, new tokens, vocabulary)`.
        tokens: The continuations, `(prompts, new tokens)`.
    """

    read: tuple[Tensor, ...]
    continued: Tensor
    tokens: Tensor


def prompt_tokens(tokenizer: Any, vocabulary: int) -> list[list[int]]:
    """Returns the prompts in tokens that the model has; random tokens without a tokenizer."""
    if tokenizer is not None:
        encoded = [tokenizer.encode(text) for text in PROMPTS]
        known = [[token for token in tokens if token < vocabulary] for tokens in encoded]
        ends = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        first = [token for token in ends if token and token < vocabulary]
        return [tokens or first[:1] or [0] for tokens in known]
    generator = torch.Generator().manual_seed(0)
    lengths = [3 + number % 9 for number in range(len(PROMPTS))]
    return [
        torch.randint(0, vocabulary, (length,), generator=generator).tolist() for length in lengths
    ]


@torch.no_grad()
def answers(model: Any, prompts: Sequence[Sequence[int]], *, padding: int = 0) -> PromptAnswers:
    """Runs a transformers model on prompts and continues them greedily.

    Args:
        model: The model, or a wrapper that generates like it.
        prompts: Tokens of the prompts.
        padding: Padding token.
    """
    device = model.get_input_embeddings().weight.device
    longest = max(map(len, prompts))
    right = torch.full((len(prompts), longest), padding)
    left, attention = right.clone(), torch.zeros_like(right)
    for row, prompt in enumerate(prompts):
        right[row, : len(prompt)] = torch.tensor(prompt)
        left[row, longest - len(prompt) :] = torch.tensor(prompt)
        attention[row, longest - len(prompt) :] = 1
    # padding on the right does not affect a causal model's earlier logits
    logits = model(input_ids=right.to(device), use_cache=False).logits
    with greedy(model):
        output = model.generate(
            input_ids=left.to(device),
            attention_mask=attention.to(device),
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            pad_token_id=padding,
            output_logits=True,
            return_dict_in_generate=True,
        )
    read = logits.float().log_softmax(-1).cpu()
    return PromptAnswers(
        tuple(read[row, : len(prompt)] for row, prompt in enumerate(prompts)),
        torch.stack(output.logits, dim=1).float().log_softmax(-1).cpu(),
        output.sequences[:, longest:].cpu(),
    )


def ablated_answers(
    model: GatedModel,
    names: Sequence[str],
    scale: float,
    prompts: Sequence[Sequence[int]],
    *,
    means: Means | None = None,
) -> PromptAnswers:
    """Returns the answers of broca's ablated model.

    Args:
        model: The model.
        names: Names of the ablated components.
        scale: Factor of their outputs.
        prompts: Tokens of the prompts.
        means: Mean outputs that replace those of the components, under mean ablation.
    """
    parts = model.gated_parts(names, scale)
    with ActiveGates(parts.points, parts.values, replacement=means, every_row=True):
        return answers(model.model, prompts)


def compare_answers(
    ablated: PromptAnswers, exported: PromptAnswers, *, dtype: str, libraries: Sequence[str]
) -> ReloadCheck:
    """Compares the answers of an export with broca's.

    A continuation is compared up to the first differing token, which the tolerance must explain.

    Args:
        ablated: Answers of broca's ablated model.
        exported: Answers of the export.
        dtype: Number format of the weights.
        libraries: Libraries that loaded the export.

    Raises:
        SelfTestFailed: The answers differ by more than the number format explains.
    """
    spread = max(float(torch.cat(ablated.read).std()), 1.0)
    tolerance = TOLERANCE.get(dtype, 1e-1) * spread
    differences = [
        float((expected - actual).abs().max())
        for expected, actual in zip(ablated.read, exported.read, strict=True)
    ]
    same = ablated.tokens == exported.tokens  # (prompts, new tokens)
    for row in range(len(same)):
        agreed = int(same[row].long().cumprod(0).sum())
        until = slice(0, agreed + 1)  # the step at which they differ had the same past
        parted = ablated.continued[row, until] - exported.continued[row, until]
        differences.append(float(parted.abs().max()))
    worst = max(differences)
    if not worst <= tolerance:
        raise SelfTestFailed(
            f"the export does not answer as the ablated model does: log-probabilities differ by "
            f"{worst:.2g}, the number format explains {tolerance:.2g}; do not use the files that "
            "were written, and please report the architecture"
        )
    return ReloadCheck(
        libraries={name: version(name) for name in libraries},
        prompts=len(ablated.read),
        tokens=ablated.tokens.shape[1],
        difference=worst,
        tolerance=tolerance,
        same_continuations=int(same.all(dim=1).sum()),
    )
