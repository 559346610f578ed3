"""The score of an exported model by lm-eval's own `hf` model."""

from __future__ import annotations

import logging
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from broca.errors import BadInput, SelfTestFailed
from broca.options import TaskOptions
from broca.results.export import ScoreCheck
from broca.tasks import Benchmark

_EXACT = 1e-4
"""Largest difference of two scores in float32, relative to the score."""

_HALF = 0.02
"""The same where numbers are rounded more coarsely: near ties may fall the other way."""


def require_single(benchmark: Benchmark) -> None:
    """Refuses a group of tasks.

    Raises:
        BadInput: It is one.
    """
    if len(benchmark.task_names) > 1:
        raise BadInput(
            f"`check` compares the score of one task, and '{benchmark.name}' is a group: name one "
            f"of {', '.join(benchmark.task_names[:3])}, ... in `task`"
        )


def harness_score(
    model: Any, tokenizer: Any, benchmark: Benchmark, *, options: TaskOptions
) -> float:
    """Scores a model of transformers or PEFT with lm-eval's `hf` model and evaluator.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        benchmark: The task, as broca asks it.
        options: How it is asked.
    """
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    (task,) = benchmark.harness_tasks
    with redirect_stderr(StringIO()):  # it draws bars that nothing switches off
        results = simple_evaluate(
            HFLM(pretrained=model, tokenizer=tokenizer, batch_size=8),
            tasks=[task],
            task_manager=TaskManager(include_defaults=False),  # which would take seconds
            num_fewshot=options.num_fewshot,
            limit=options.limit,
            apply_chat_template=options.chat_template,
            system_instruction=options.system_prompt,
            fewshot_as_multiturn=options.fewshot_as_multiturn and options.chat_template,
            bootstrap_iters=0,
            log_samples=False,
        )
    name, _, filtered = benchmark.metric.partition(",")
    return float(results["results"][task.task_name][f"{name},{filtered or 'none'}"])


def compare_scores(benchmark: Benchmark, broca: float, hf: float, *, dtype: str) -> ScoreCheck:
    """Compares lm-eval's score of an export with broca's of the ablated model.

    Raises:
        SelfTestFailed: They differ by more than the number format explains.
    """
    allowed = _EXACT if dtype in ("float32", "float64") else _HALF
    if not abs(broca - hf) <= allowed * max(abs(broca), 1.0):
        raise SelfTestFailed(
            f"lm-eval's `hf` model scores {hf:.4f} with the export on '{benchmark.name}' and "
            f"broca's ablated model {broca:.4f}: do not use the export, and please report the "
            "architecture"
        )
    return ScoreCheck(benchmark.name, benchmark.metric, len(benchmark.items), broca, hf)
