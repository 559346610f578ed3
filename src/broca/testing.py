"""Public ground truth: tiny models, a tokenizer, and planted problems with known answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.plan import Measurement, Plan


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer of 258 tokens: 256 bytes, `<bos>` and `<eos>` (which also pads)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<bos>": 0, "<eos>": 1}
    vocabulary |= {symbol: number for number, symbol in enumerate(alphabet, start=2)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<eos>"
    )


def tiny_llama(
    *, layers: int = 2, heads: int = 4, kv_heads: int = 2, context: int = 256, seed: int = 0
) -> Any:
    """A Llama model of random weights for `tiny_tokenizer`, large enough to prefer some tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=8,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


@dataclass(frozen=True)
class PlantedProblem:
    """A simulated model whose true effects are known.

    Attributes:
        effects: True effect of ablating each component alone, `(components,)`.
        planted: Columns of the components that matter, worst first.
        baseline: Response of the intact model.
        noise: Standard deviation of the response of one row.
        seed: Seed of the noise.
    """

    effects: NDArray[np.float64]
    planted: tuple[int, ...]
    baseline: float
    noise: float
    seed: int

    def run(self, plan: Plan) -> Measurement:
        """Answers a plan like an executor: additive effects, floor at 0, noise by row."""
        mean = np.maximum(self.baseline + plan.masks @ self.effects, 0.0)
        # the noise of a row depends on its mask and item alone: a repeated row repeats itself
        keys = plan.masks @ np.arange(1, plan.masks.shape[1] + 1)
        noise = np.array(
            [
                np.random.default_rng([self.seed, int(keys[mask]), int(item)]).normal()
                for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
            ]
        )
        return Measurement(plan, mean[plan.mask_index] + self.noise * noise)


def planted_problem(
    *,
    components: int = 96,
    planted: int = 5,
    effect: float = 0.3,
    noise: float = 0.1,
    baseline: float = 1.0,
    seed: int = 0,
) -> PlantedProblem:
    """Makes a problem in which `planted` components matter and the others nearly do not.

    The planted effects fall from `effect` to half of it; the others are Gaussian with a
    hundredth of it.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, effect / 100, components)
    columns = rng.choice(components, planted, replace=False)
    effects[columns] = -np.linspace(effect, effect / 2, planted)
    return PlantedProblem(effects, tuple(int(c) for c in columns), baseline, noise, seed)
