"""The score of an exported model by lm-eval's own `hf` model."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from broca.engine import Ablation
from broca.errors import BadInput, SelfTestFailed
from broca.exports.requests import ExportRequest
from broca.options import TaskOptions
from broca.results.export import ScoreCheck
from broca.runs.run import Run
from broca.runs.task_sets import load_tasks, whole_tasks
from broca.tasks import Benchmark, Task

_EXACT = 1e-4
"""Largest difference of two scores in float32, relative to the score."""

_HALF = 0.02
"""Largest difference in coarser number formats, in which near-ties may be decided differently."""


def checked_task(request: ExportRequest, task: str | Task | None) -> str | Task:
    """Returns the task of the check, by default that of the export's result.

    Raises:
        BadInput: Neither a task nor a result is given, or the ablation is neither zero ablation nor
            scaling.
    """
    if Ablation(request.ablation.kind).needs_donors:
        raise BadInput(
            f"`check` compares scores under zero ablation or a scale; under {request.ablation.kind}"
            " ablation the outputs alone are compared"
        )
    if task is not None:
        return task
    if request.result is None:
        raise BadInput("`check` needs a `task` to compare scores on")
    return request.result.task


def checked_benchmark(opened: Run, task: str | Task) -> Benchmark:
    """Loads the task of the check with the options of the call.

    Raises:
        BadInput: The task is a group.
    """
    catalog, options = opened.catalog, opened.options.task_options
    name = catalog.name_of(task)
    benchmark = load_tasks(opened.model, [name], catalog, task=name, options=options)[name]
    if len(benchmark.task_names) > 1:
        raise BadInput(
            f"`check` compares the score of one task, and '{benchmark.name}' is a group: name one "
            f"of {', '.join(benchmark.task_names[:3])}, ... in `task`"
        )
    return benchmark


def ablated_score(opened: Run, names: Sequence[str], scale: float, benchmark: Benchmark) -> float:
    """Returns broca's score of the ablated model on all items.

    Args:
        opened: The model and the journal.
        names: Names of the ablated components.
        scale: Factor of their outputs.
        benchmark: The task.
    """
    run = opened.on(
        whole_tasks({benchmark.name: benchmark}),
        ablation=Ablation(scale=scale),
        settings={"measures": benchmark.name, "checks": list(names)},
    )
    scores = run.scores(opened.model.components.columns(names))
    run.finish()
    return scores[benchmark.name]


def harness_score(
    model: Any, tokenizer: Any, benchmark: Benchmark, *, options: TaskOptions
) -> float:
    """Scores a model of transformers or PEFT with lm-eval's `hf` model and evaluator.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        benchmark: The task in broca.
        options: Task options.
    """
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    (task,) = benchmark.harness_tasks
    if (tokenizer.pad_token_id or 0) >= model.get_input_embeddings().num_embeddings:
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.pad_token = tokenizer.eos_token  # hf embeds its padding
    with redirect_stderr(StringIO()):  # it draws bars that cannot be switched off
        results = simple_evaluate(
            HFLM(
                pretrained=model,
                tokenizer=tokenizer,
                batch_size=8,
                max_length=options.max_length,
                chat_template_args=options.template_settings,
            ),
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
        SelfTestFailed: The scores differ by more than the number format explains.
    """
    allowed = _EXACT if dtype in ("float32", "float64") else _HALF
    if not abs(broca - hf) <= allowed * max(abs(broca), 1.0):
        raise SelfTestFailed(
            f"lm-eval's `hf` model scores {hf:.4f} with the export on '{benchmark.name}' and "
            f"broca's ablated model {broca:.4f}: do not use the export, and please report the "
            "architecture"
        )
    return ScoreCheck(benchmark.name, benchmark.metric, len(benchmark.items), broca, hf)
