"""What each method would take on this machine, from a few timed rows; nothing is searched."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from broca import searches
from broca.engine import Engine, EngineOptions
from broca.errors import BadInput, TaskUnusable
from broca.executors import LocalExecutor, with_references
from broca.measurement import Measurement, Plan, Response
from broca.models import GatedModel, load
from broca.runs.recording import shared_tokens, tokens_of
from broca.runs.task_sets import lay_out, load_tasks, other_tasks
from broca.searches import OtherTask, Problem
from broca.tasks import Benchmark, Catalog, Item, TaskOptions
from broca.verification import roles

WARM_UP = 4
SAMPLE = 32
"""Rows that are timed, in each response."""
_SHARE = 0.05
"""Of the components, ablated in timed rows."""


@dataclass(frozen=True)
class MethodEstimate:
    """What a method would take.

    Attributes:
        method: Its name.
        rows: Rows of its search, the most that it may ask for.
        tokens: Tokens of these rows, each row by itself.
        seconds: Time at the speed of the timed rows; sharing of prefixes and layers makes it less.
        response: What it measures most rows in.
        problem: Why it cannot run with these settings; empty otherwise.
    """

    method: str
    rows: int
    tokens: int
    seconds: float
    response: str
    problem: str = ""


@dataclass(frozen=True)
class Estimate:
    """What all methods would take.

    Attributes:
        model: The model.
        task: The task.
        items: `locate` items of the task.
        components: Number of components.
        timed_rows: Rows that were timed, in all responses together.
        tokens_per_second: Speed in each response.
        memory_bytes: Most memory that was held, by the device or else by the process.
        proof_rows: Rows that the proof measures besides, at least.
        methods: Every method.
    """

    model: str
    task: str
    items: int
    components: int
    timed_rows: int
    tokens_per_second: dict[str, float]
    memory_bytes: int
    proof_rows: int
    methods: tuple[MethodEstimate, ...]

    def to_json(self) -> str:
        """As indented JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


def estimate(
    model: str | GatedModel,
    *,
    task: str,
    others: str | Sequence[str] = "auto",
    include_path: str | Path | None = None,
    rows: int | None = None,
    k: int = 5,
    items: int = 100,
    seed: int = 0,
    components: str = "heads",
    dtype: str = "auto",
    device: str | None = None,
    allow_pickle: bool = False,
    allow_code: bool = False,
    task_options: TaskOptions | None = None,
    engine_options: EngineOptions | None = None,
    sample: int = SAMPLE,
) -> Estimate:
    """Times some rows of the task and works out what each method would take.

    Each method's search is asked for its plans, and its rows are counted instead of measured.

    Args:
        model: As for `broca.localize`, like all that follow.
        task: The task.
        others: The tasks that the heads should leave alone.
        include_path: A folder of lm-eval YAML tasks to add.
        rows: Most rows of a search.
        k: Most heads to select.
        items: Most items to search on.
        seed: Seed of everything random.
        components: Which parts can be ablated.
        dtype: Number format of the weights.
        device: Device.
        allow_pickle: Whether weights in pickle format may be loaded.
        allow_code: Whether tasks may execute what the model writes.
        task_options: How the tasks are asked.
        engine_options: Size of batches and sharing of work.
        sample: Rows to time in each response.

    Raises:
        BrocaError: Bad input.
    """
    for name, value in (("--k", k), ("--rows", 1 if rows is None else rows), ("--sample", sample)):
        if value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}")
    if not isinstance(model, GatedModel):
        model = load(
            model,
            dtype=dtype,
            device=device,
            allow_pickle=allow_pickle,
            components=components,
        )
    catalog = Catalog(include_path, allow_code=allow_code)
    benchmarks = load_tasks(
        model,
        (task, *other_tasks(task, others, model.name, catalog)),
        catalog,
        task=task,
        options=task_options,
    )
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    _, rest = roles(task, benchmarks, ())
    searchable = (task, *rest)
    bank, places = lay_out(benchmarks, splits, {"locate": searchable, "confirm": searchable})
    located = places["locate"][task]
    speeds, timed = _speeds(model, bank, located, engine_options, seed=seed, sample=sample)
    problem = Problem(
        components=len(model.components),
        items=located,
        k=k,
        rows=rows,
        seed=seed,
        confirm=places["confirm"][task],
        continuous="probability" in speeds,
        differentiable=True,
        others=tuple(
            OtherTask(name, places["locate"][name], places["confirm"][name]) for name in rest
        ),
        **shared_tokens([bank[position][1] for position in located]),
    )
    lengths = np.array([tokens_of(item) for _, item in bank], dtype=np.int64)
    return Estimate(
        model=model.name,
        task=task,
        items=len(located),
        components=len(model.components),
        timed_rows=timed,
        tokens_per_second=speeds,
        memory_bytes=_memory(model),
        proof_rows=2 * sum(len(split.report) for split in splits.values()),
        methods=tuple(count_rows(method, problem, lengths, speeds) for method in searches.METHODS),
    )


def count_rows(
    method: str, problem: Problem, lengths: NDArray[np.int64], speeds: dict[str, float]
) -> MethodEstimate:
    """Asks a search for its plans and counts instead of measuring.

    Args:
        method: Name of the method.
        problem: What it would solve.
        lengths: Tokens of a row of each bank item.
        speeds: Tokens a second in `accuracy`, and in `probability` where there is one.
    """
    own = searches.RESPONSES.get(method, "accuracy")
    if "probability" not in speeds:
        own = "accuracy"
    wants = own != "accuracy"
    others = problem.others if searches.measures_others(method) else ()
    problem = replace(problem, others=others, continuous=wants, differentiable=wants)
    counted = {"accuracy": [0, 0], "probability": [0, 0]}
    # losses that add up make greedy and co-ablation go on to the end, noise makes every setting of
    # cs-tuned select something, and so do gradients; elsewhere the responses decide nothing
    slope = 1e-3 if method in ("greedy", "co-ablation") else 0.0
    noise = np.random.default_rng(problem.seed).random if method == "cs-tuned" else np.zeros
    directions = np.random.default_rng(problem.seed)
    options: dict[str, Any] = {}
    if method.startswith("cs-"):
        options = {"recovery": "lasso", "resamples": 0}
    elif method == "focus":  # the most that it may ask for
        options = {"stop": False}
    try:
        search = searches.make_search(method, problem, **options)
    except BadInput as error:
        return MethodEstimate(method, 0, 0, 0.0, "accuracy", str(error))
    while (plan := search.ask()) is not None:
        # a margin is read as fast as the probability that it makes
        response: Response = "accuracy" if (plan.response or own) == "accuracy" else "probability"
        counted[response][0] += plan.cost
        counted[response][1] += int(lengths[plan.item_index].sum()) * (plan.cost // len(plan))
        losses = slope * plan.masks.sum(axis=1)[plan.mask_index]
        shape = (len(plan), plan.masks.shape[1])
        gradients = directions.normal(size=shape).astype(np.float32) if plan.gradients else None
        search.tell(Measurement(plan, 1 - losses - noise(len(plan)), gradients))
    return MethodEstimate(
        method=method,
        rows=sum(rows for rows, _ in counted.values()),
        tokens=sum(tokens for _, tokens in counted.values()),
        seconds=sum(tokens / speeds[name] for name, (_, tokens) in counted.items() if tokens),
        response=max(counted, key=lambda name: counted[name][0]),
    )


def _speeds(
    model: GatedModel,
    bank: Sequence[tuple[Benchmark, Item]],
    located: NDArray[np.intp],
    options: EngineOptions | None,
    *,
    seed: int,
    sample: int,
) -> tuple[dict[str, float], int]:
    """Tokens a second in each response that the task has, and the rows that were timed."""
    engine = Engine(model, options)
    rng = np.random.default_rng(seed)
    wanted = located[np.arange(sample) % len(located)]
    masks = rng.random((sample, len(model.components))) < _SHARE
    plan = Plan(masks, np.arange(sample), wanted)
    tokens = sum(tokens_of(bank[position][1]) for position in wanted)
    speeds = {"accuracy": tokens / _seconds(LocalExecutor(engine, bank), plan)}
    try:
        referenced = with_references(
            engine, list(bank), sorted(set(wanted.tolist())), components=len(model.components)
        )
    except TaskUnusable:
        return speeds, sample
    usable = np.isin(wanted, referenced.positions)
    if usable.any():
        some = Plan(masks[usable], np.arange(int(usable.sum())), wanted[usable])
        executor = LocalExecutor(engine, referenced.bank, response="probability")
        tokens = sum(tokens_of(bank[position][1]) for position in wanted[usable])
        speeds["probability"] = tokens / _seconds(executor, some)
    return speeds, sample + int(usable.sum()) * (len(speeds) - 1)


def _seconds(executor: LocalExecutor, plan: Plan) -> float:
    """Time of a plan, after a few of its rows to warm up."""
    executor.run(Plan(plan.masks, plan.mask_index[:WARM_UP], plan.item_index[:WARM_UP]))
    start = time.perf_counter()
    executor.run(plan)
    return max(time.perf_counter() - start, 1e-9)


def _memory(model: GatedModel) -> int:
    """Most bytes held so far: on the device, or by the process where that is a CPU."""
    if model.device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(model.device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
