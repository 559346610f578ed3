"""Loads an export with other libraries only, and compares it with the model that broca ablates.

Its answers to some prompts must be equal, and its score by lm-eval's own `hf` model if requested.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from broca.engine import Ablation
from broca.errors import BadInput, SelfTestFailed
from broca.exports.forms import SNIPPETS
from broca.models import ActiveGates, GatedModel, greedy, require_peft
from broca.models.caches import left_padded
from broca.models.gated import GatedParts
from broca.models.gates import Replacement
from broca.results.export import Form, ReloadCheck, ScoreCheck
from broca.runs.run import Run
from broca.runs.task_sets import load_tasks, whole_tasks
from broca.tasks import Benchmark, Task, TaskOptions
from broca.tasks.preparation import as_in_harness
from broca.tasks.tokenizer import on_day

PromptTokens = Sequence[Sequence[int]]
"""The tokens of some prompts."""

NEW_TOKENS = 12
"""Number of tokens of each continuation, where the model has room."""

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
class Origin:
    """The source of a base model, from which it can be loaded without broca.

    Attributes:
        location: A folder or a hub id; None for a model in memory.
        revision: Commit on the hub.
        dtype: Number format of the loaded model.
        device: Device of the loaded model.
        module: A model in memory, of which copies are loaded.
        remote_code: Whether the Python files of the model may run.
    """

    location: str | None
    revision: str | None
    dtype: str
    device: torch.device
    module: Any = None
    remote_code: bool = False

    @classmethod
    def of(cls, model: GatedModel) -> Origin:
        """Returns the source of a model."""
        if model.source is None:
            return cls(None, None, model.dtype, model.device, model.model, model.remote_code)
        # a folder or repository with an adapter is loaded as it is: the commit is that of the base
        place = model.source if model.adapter else model.model.config.name_or_path
        if Path(place).expanduser().is_dir():
            place = str(Path(place).expanduser().absolute())
        revision = None if model.adapter else model.revision
        return cls(place, revision, model.dtype, model.device, remote_code=model.remote_code)

    def load(self, export: Path, form: Form) -> Any:
        """Loads an export in a folder as its user does, in the base's format and on its device."""
        from transformers import AutoModelForCausalLM

        if form != "weights" and self.module is not None:
            model = copy.deepcopy(self.module)
        else:
            place = (str(export), None) if form == "weights" else (self.location, self.revision)
            model = AutoModelForCausalLM.from_pretrained(
                place[0], revision=place[1], dtype=getattr(torch, self.dtype),
                trust_remote_code=self.remote_code,
            ).to(self.device)  # fmt: skip
        if form == "adapter":
            with catch_warnings():
                simplefilter("ignore", FutureWarning)  # PEFT's own calls of transformers
                model = require_peft().PeftModel.from_pretrained(model, str(export))
        elif form == "heads":
            snippet = {"open": lambda name: (export / name).open(encoding="utf-8")}
            exec(SNIPPETS["hooks"], snippet)  # the code that the list gives its reader
            snippet["ablate"](model)
        return model.eval()


@dataclass(frozen=True)
class PromptAnswers:
    """The answers of a model to some prompts.

    Attributes:
        read: Log-probabilities at every token of all prompts, `(tokens, vocabulary)`.
        continued: Log-probabilities of the continuations, `(prompts, new tokens, vocabulary)`.
        tokens: The continuations, `(prompts, new tokens)`.
    """

    read: Tensor
    continued: Tensor
    tokens: Tensor


def prompt_tokens(tokenizer: Any, vocabulary: int, longest: int) -> list[list[int]]:
    """Returns the prompts in tokens that the model has; their bytes without a tokenizer.

    They are cut where a continuation would not fit into the model's `longest` tokens.
    """
    most = max(1, longest - NEW_TOKENS)
    if tokenizer is None:
        return [[byte % vocabulary for byte in text.encode()[:most]] for text in PROMPTS]
    ends = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    first = [token for token in ends if token and token < vocabulary]
    encoded = [tokenizer.encode(text) for text in PROMPTS]
    known = [[token for token in tokens if token < vocabulary][:most] for tokens in encoded]
    return [tokens or first[:1] or [0] for tokens in known]


@torch.no_grad()
def answers(model: Any, prompts: PromptTokens, new_tokens: int = NEW_TOKENS) -> PromptAnswers:
    """Runs a transformers model on the tokens of prompts and continues them greedily."""
    device = model.get_input_embeddings().weight.device
    right = pad_sequence([torch.tensor(prompt) for prompt in prompts], batch_first=True)
    left, attention = left_padded(prompts, device=device)
    # padding on the right does not affect a causal model's earlier logits
    logits = model(input_ids=right.to(device), use_cache=False).logits
    with greedy(model):
        output = model.generate(
            input_ids=left, attention_mask=attention, pad_token_id=0,
            max_new_tokens=new_tokens, min_new_tokens=new_tokens,
            output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
    read = logits.float().log_softmax(-1).cpu()
    return PromptAnswers(
        torch.cat([read[row, : len(prompt)] for row, prompt in enumerate(prompts)]),
        torch.stack(output.logits, dim=1).float().log_softmax(-1).cpu(),
        output.sequences[:, left.shape[1] :].cpu(),
    )


def ablated_answers(
    gated: GatedModel,
    parts: GatedParts,
    means: Replacement | None,
    prompts: PromptTokens,
    new_tokens: int,
) -> tuple[PromptAnswers, float]:
    """Runs a model with some components ablated on the tokens of prompts.

    Returns:
        Its answers, and the largest difference of log-probabilities if all gates are larger by one
        unit in the last place: what rounding explains.
    """

    def run(values: Tensor, new_tokens: int) -> PromptAnswers:
        with ActiveGates(parts.points, values, replacement=means, every_row=True):
            return answers(gated.model, prompts, new_tokens)

    ablated = run(parts.values, new_tokens)
    rounded = run(parts.values * (1 + torch.finfo(gated.model.dtype).eps), 1)
    return ablated, float((ablated.read - rounded.read).abs().max())


def compare_answers(
    ablated: PromptAnswers, exported: PromptAnswers, *, dtype: str, form: Form, rounding: float = 0
) -> ReloadCheck:
    """Compares the answers of an export with broca's.

    A continuation is compared up to the first differing token, which the tolerance must explain.

    Args:
        ablated: Answers of broca's ablated model.
        exported: Answers of the export.
        dtype: Number format of the weights.
        form: Form of the export, which determines the libraries that loaded it.
        rounding: Difference that rounding explains; both sides round.

    Raises:
        SelfTestFailed: The answers differ by more than the number format explains.
    """
    spread = max(float(ablated.read.std()), 1.0)
    tolerance = max(TOLERANCE.get(dtype, 1e-1) * spread, 2 * rounding)
    same = ablated.tokens == exported.tokens  # (prompts, new tokens)
    begun = torch.ones(len(same), 1, dtype=torch.bool)
    same_past = torch.cat([begun, same[:, :-1]], dim=1).cumprod(1).bool()
    continued = (ablated.continued - exported.continued).abs().amax(-1)[same_past]
    read = (ablated.read - exported.read).abs()
    worst = float(torch.stack([read.max(), continued.max()]).max())
    if not worst <= tolerance:
        raise SelfTestFailed(
            f"the export does not answer as the ablated model does: log-probabilities differ by "
            f"{worst:.2g}, the number format explains {tolerance:.2g}; nothing is written: try "
            "`dtype` float32, and please report the architecture if that fails too"
        )
    libraries = ("transformers", "peft") if form == "adapter" else ("transformers",)
    versions = {name: version(name) for name in libraries}
    prompts, tokens = ablated.tokens.shape
    same_continuations = int(same.all(dim=1).sum())
    return ReloadCheck(
        versions, prompts=prompts, tokens=tokens,
        difference=worst, tolerance=tolerance, same_continuations=same_continuations,
    )  # fmt: skip


def ablated_score(
    opened: Run, names: Sequence[str], scale: float, task: str | Task
) -> tuple[Benchmark, float]:
    """Loads a task with the options of the call; returns it and broca's score on all items.

    Args:
        opened: The model and the journal.
        names: Names of the ablated components.
        scale: Factor of their outputs.
        task: The task.

    Raises:
        BadInput: The task is a group.
    """
    # lm-eval scores no items of a split that is only searched
    catalog, options = opened.catalog, replace(opened.options.task_options, locate_split=None)
    name = catalog.name_of(task)
    benchmark = load_tasks(opened.model, [name], catalog, task=name, options=options)[name]
    if len(benchmark.task_names) > 1:
        raise BadInput(
            f"`check` compares the score of one task, and '{benchmark.name}' is a group: name one "
            f"of {', '.join(benchmark.task_names[:3])}, ... in `task`"
        )
    settings = {"measures": name, "checks": list(names)}
    tasks, ablation = whole_tasks({name: benchmark}), Ablation(scale=scale)
    run = opened.on(tasks, ablation=ablation, settings=settings)
    scores = run.scores(opened.model.components.columns(names))
    run.finish()
    return benchmark, scores[name]


def compare_scores(
    model: Any,
    tokenizer: Any,
    benchmark: Benchmark,
    broca: float,
    *,
    dtype: str,
    options: TaskOptions,
) -> ScoreCheck:
    """Compares the score of an export by lm-eval's `hf` model with broca's of the ablated model.

    Args:
        model: The export, a model of transformers or PEFT.
        tokenizer: Its tokenizer.
        benchmark: The task in broca.
        broca: broca's score.
        dtype: Number format of the weights.
        options: Task options.

    Raises:
        SelfTestFailed: The scores differ by more than the number format explains: relative to the
            score, or to 1, by 1e-4, and by 0.02 where near-ties may be decided differently.
    """
    from lm_eval import evaluator
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    (task,) = benchmark.harness_tasks
    if (tokenizer.pad_token_id or 0) >= model.get_input_embeddings().num_embeddings:
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.pad_token = tokenizer.eos_token  # hf embeds its padding
    day = on_day(options.chat_template_date)
    # they ask Git, which complains outside a repository, and programs of the machine
    silent = patch.multiple(evaluator, get_git_commit_hash=str, add_env_info=str)
    with silent, as_in_harness(), day, redirect_stderr(StringIO()):  # it draws bars in any case
        results = evaluator.simple_evaluate(
            HFLM(
                pretrained=model, tokenizer=tokenizer, batch_size=8, max_length=options.max_length,
                chat_template_args=options.template_settings,
            ),
            tasks=[task], num_fewshot=options.num_fewshot, limit=options.limit,
            task_manager=TaskManager(include_defaults=False),  # which would take seconds
            apply_chat_template=options.chat_template, system_instruction=options.system_prompt,
            fewshot_as_multiturn=options.fewshot_as_multiturn and options.chat_template,
            bootstrap_iters=0, log_samples=False, torch_random_seed=None,
        )  # fmt: skip
    name, _, filtered = benchmark.metric.partition(",")
    hf = float(results["results"][task.task_name][f"{name},{filtered or 'none'}"])
    allowed = 1e-4 if dtype in ("float32", "float64") else 0.02
    if not abs(broca - hf) <= allowed * max(abs(broca), 1.0):
        raise SelfTestFailed(
            f"lm-eval's `hf` model scores {hf:.4f} with the export on '{benchmark.name}' and "
            f"broca's ablated model {broca:.4f}: nothing is written; please report the architecture"
        )
    return ScoreCheck(benchmark.name, benchmark.metric, len(benchmark.items), broca, hf)
