"""`plan`: what each method would take on this machine, from a few timed rows."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput, TaskUnusable
from broca.measurement import Measurement, Plan, Response
from broca.models import GatedModel
from broca.options import (
    EngineOptions,
    ExecutorOptions,
    ModelOptions,
    SearchOptions,
    SourceOptions,
    TaskOptions,
    takes_options,
    without,
)
from broca.results.cost_estimate import CostEstimate, MethodCost
from broca.runs.problems import problem_of
from broca.runs.progress import Report, Stages
from broca.runs.provenance import model_info
from broca.runs.run import Run, tokens_of
from broca.runs.setup import claimed, model_in_use
from broca.runs.workspace import Workspace
from broca.searches import Problem
from broca.tasks import Task

WARM_UP = 4
SAMPLE = 32
"""Rows that are timed, in each response."""
_SHARE = 0.05
"""Of the components, ablated in timed rows."""


@takes_options
def plan(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    seed: int = 0,
    sample: int = SAMPLE,
    on_progress: Report | None = None,
    search_options: Annotated[SearchOptions, without("method", "response", "options")],
    source_options: SourceOptions,
    task_options: TaskOptions,
    model_options: ModelOptions,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
) -> CostEstimate:
    """Times some rows of the task and works out what each method would take.

    Each method's search is asked for its plans, and its rows are counted instead of measured.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task.
        others: The tasks that the heads should leave alone, as in `localize`.
        seed: Seed of everything random.
        sample: Rows to time, in each response.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input.
    """
    if sample < 1:
        raise BadInput(f"`sample` must be at least 1, not {sample}")
    stages = Stages(on_progress)
    with (
        Workspace(executor=executor_options) as space,  # timed rows are never in a journal
        model_in_use(model, model_options, stages) as gated,
    ):
        stages.enter("building the tasks")
        tasks = claimed(
            gated, task, space.catalog(source_options), others=others, task_options=task_options,
            items=search_options.items, seed=seed,
        )  # fmt: skip
        run = Run(
            gated,
            tasks,
            space,
            engine_options=engine_options,
            model_options=model_options,
            stages=stages,
        )
        stages.enter("timing some rows")
        speeds, timed = _speeds(run, seed=seed, sample=sample)
        continuous = "probability" in speeds
        problem = problem_of(
            gated, tasks, tasks.places["locate"], search_options, seed=seed, continuous=continuous
        )
        lengths = np.array([tokens_of(item) for _, item in tasks.bank], dtype=np.int64)
        stages.enter("counting the rows of every method")
        return CostEstimate(
            model=model_info(gated),
            task=tasks.task,
            items=len(tasks.places["locate"][tasks.task]),
            components=len(gated.components),
            timed_rows=timed,
            tokens_per_second=speeds,
            memory_bytes=_memory(gated),
            proof_rows=2 * sum(len(places) for places in tasks.places["report"].values()),
            methods=tuple(
                count_rows(method, problem, lengths, speeds) for method in searches.METHODS
            ),
        )


def count_rows(
    method: str, problem: Problem, lengths: NDArray[np.int64], speeds: dict[str, float]
) -> MethodCost:
    """Asks a search for its plans and counts instead of measuring.

    Args:
        method: Name of the method.
        problem: What it would solve.
        lengths: Tokens of a row of each bank item.
        speeds: Tokens a second in `accuracy`, and in `probability` where there is one.
    """
    record = searches.require_method(method)
    default: Response = record.response if "probability" in speeds else "accuracy"
    continuous = default != "accuracy"
    others = problem.others if record.measures_others else ()
    problem = replace(problem, others=others, continuous=continuous, differentiable=continuous)
    counted = {"accuracy": [0, 0], "probability": [0, 0]}
    slope = 1e-3 if record.counted_losses == "additive" else 0.0
    random = record.counted_losses == "random"
    noise = np.random.default_rng(problem.seed).random if random else np.zeros
    directions = np.random.default_rng(problem.seed)
    try:
        search = record.search(problem, record.counting)
    except BadInput as error:
        return MethodCost(method, 0, 0, 0.0, "accuracy", str(error))
    while (plan := search.ask()) is not None:
        # a margin is read as fast as the probability that it makes
        response: Response = (
            "accuracy" if (plan.response or default) == "accuracy" else "probability"
        )
        counted[response][0] += plan.cost
        counted[response][1] += int(lengths[plan.item_index].sum()) * (plan.cost // len(plan))
        losses = slope * plan.masks.sum(axis=1)[plan.mask_index]
        shape = (len(plan), plan.masks.shape[1])
        gradients = directions.normal(size=shape).astype(np.float32) if plan.gradients else None
        search.tell(Measurement(plan, 1 - losses - noise(len(plan)), gradients))
    return MethodCost(
        method=method,
        rows=sum(rows for rows, _ in counted.values()),
        tokens=sum(tokens for _, tokens in counted.values()),
        seconds=sum(tokens / speeds[name] for name, (_, tokens) in counted.items() if tokens),
        response=max(counted, key=lambda name: counted[name][0]),
    )


def _speeds(run: Run, *, seed: int, sample: int) -> tuple[dict[str, float], int]:
    """Tokens a second in each response that the task has, and the rows that were timed."""
    located = run.tasks.places["locate"][run.tasks.task]
    rng = np.random.default_rng(seed)
    wanted = located[np.arange(sample) % len(located)]
    masks = rng.random((sample, len(run.model.components))) < _SHARE
    speeds = {"accuracy": _tokens_a_second(run, Plan(masks, np.arange(sample), wanted), rng)}
    try:
        referenced = run.referenced("probability", {run.tasks.task: located}, otherwise=None)
    except TaskUnusable:
        return speeds, sample
    usable = np.isin(wanted, referenced.places[run.tasks.task])
    if not usable.any():
        return speeds, sample
    rows = int(usable.sum())
    plan = Plan(masks[usable], np.arange(rows), wanted[usable], response="probability")
    speeds["probability"] = _tokens_a_second(run, plan, rng)
    return speeds, sample + rows


def _tokens_a_second(run: Run, plan: Plan, rng: np.random.Generator) -> float:
    """Speed of a plan, after a few rows of other masks to warm up."""
    warm_up = rng.random((WARM_UP, plan.masks.shape[1])) < _SHARE
    items = plan.item_index[np.arange(WARM_UP) % len(plan)]
    run.measure(Plan(warm_up, np.arange(WARM_UP), items, response=plan.response))
    tokens = sum(tokens_of(run.bank[position][1]) for position in plan.item_index)
    start = time.perf_counter()
    run.measure(plan)
    return tokens / max(time.perf_counter() - start, 1e-9)


def _memory(model: GatedModel) -> int:
    """Most bytes held so far: on the device, or by the process where that is a CPU."""
    if model.device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(model.device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
