"""Times rows of a run, and counts those that a search would measure."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput, TaskUnusable
from broca.measurement import Measurement, Plan, Response
from broca.models import GatedModel
from broca.results.cost_estimate import MethodCost
from broca.runs.run import Run, tokens_of
from broca.searches import Problem
from broca.verification.trial import Places

WARM_UP = 4
"""Rows that are measured before the timed ones."""
_SHARE = 0.05
"""Share of the components that are ablated in timed rows."""
_TIMED = 32
"""Number of rows that are timed in each response for a search with a time limit."""
_SURE = 0.8
"""Share of the time that is used for rows: speeds vary, and searches compute between plans."""
_COUNTED = 1000
"""Number of rows that are counted of a search with a budget; its cost is extrapolated."""


def count_rows(
    method: str,
    problem: Problem,
    lengths: NDArray[np.int64],
    speeds: dict[str, float],
    *,
    contrast: float = 0.0,
) -> MethodCost:
    """Asks a search for its plans and counts their rows without measuring them.

    Args:
        method: Name of the method.
        problem: The problem that it would solve.
        lengths: Number of tokens of a row of each bank item.
        speeds: Tokens per second in `accuracy`, and in `probability` if the tasks have margins.
        contrast: The option of methods that look at the task alone.
    """
    record = searches.require_method(method)
    options = dict(record.counting)
    if not record.measures_others and contrast:
        options["contrast"] = contrast
    default: Response = record.response if "probability" in speeds else "accuracy"
    continuous = default != "accuracy"
    others = problem.others if record.weighs_others(options) else ()
    problem = replace(problem, others=others, continuous=continuous, differentiable=continuous)
    times = 1.0
    if record.most is not None:
        most = problem.rows or record.most(problem)
        times = max(1.0, most / _COUNTED)
        problem = replace(problem, rows=min(most, _COUNTED))
    counted = {"accuracy": [0, 0], "probability": [0, 0]}
    slope = 1e-3 if record.counted_losses == "additive" else 0.0
    random = record.counted_losses == "random"
    noise = np.random.default_rng(problem.seed).random if random else np.zeros
    directions = np.random.default_rng(problem.seed)
    try:
        search = record.search(problem, options)
    except BadInput as error:
        return MethodCost(method, 0, 0, 0.0, "accuracy", str(error))
    while (plan := search.ask()) is not None:
        # a margin takes as long as its probability
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
        rows=round(times * sum(rows for rows, _ in counted.values())),
        tokens=round(times * sum(tokens for _, tokens in counted.values())),
        seconds=times
        * sum(tokens / speeds[name] for name, (_, tokens) in counted.items() if tokens),
        response=max(counted, key=lambda name: counted[name][0]),
    )


def speeds_of(run: Run, *, seed: int, sample: int) -> tuple[dict[str, float], int]:
    """Returns the tokens per second in each response of the task, and the number of timed rows."""
    located = run.tasks.places["locate"][run.tasks.task]
    rng = np.random.default_rng(seed)
    items = located[np.arange(sample) % len(located)]
    masks = rng.random((sample, len(run.model.components))) < _SHARE
    speeds = {"accuracy": _tokens_a_second(run, Plan(masks, np.arange(sample), items), rng)}
    try:
        referenced = run.referenced("probability", {run.tasks.task: located}, otherwise=None)
    except TaskUnusable:
        return speeds, sample
    usable = np.isin(items, referenced.places[run.tasks.task])
    if not usable.any():
        return speeds, sample
    rows = int(usable.sum())
    plan = Plan(masks[usable], np.arange(rows), items[usable], response="probability")
    speeds["probability"] = _tokens_a_second(run, plan, rng)
    return speeds, sample + rows


def rows_within(run: Run, seconds: float, places: Places, *, seed: int) -> int:
    """Returns how many rows the model measures in a time, at the speed of the slower response.

    Args:
        run: The run whose model is timed, under masks that no journal contains.
        seconds: The time.
        places: Positions of each measured task's items.
        seed: Seed of the timed rows; every timing needs a new seed.
    """
    speeds, _ = speeds_of(run, seed=seed, sample=_TIMED)
    tokens = [tokens_of(run.bank[place][1]) for items in places.values() for place in items]
    return int(_SURE * seconds * min(speeds.values()) / float(np.mean(tokens)))


def _tokens_a_second(run: Run, plan: Plan, rng: np.random.Generator) -> float:
    """Returns the speed of a plan, after a few rows under other masks to warm up."""
    warm_up = rng.random((WARM_UP, plan.masks.shape[1])) < _SHARE
    items = plan.item_index[np.arange(WARM_UP) % len(plan)]
    run.measure(Plan(warm_up, np.arange(WARM_UP), items, response=plan.response))
    tokens = sum(tokens_of(run.bank[position][1]) for position in plan.item_index)
    start = time.perf_counter()
    run.measure(plan)
    return tokens / max(time.perf_counter() - start, 1e-9)


def peak_memory(model: GatedModel) -> int:
    """Returns the peak memory in bytes: of the GPU, or of the process for a model on a CPU."""
    if model.device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(model.device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
