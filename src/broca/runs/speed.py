"""Times rows of a run."""

import resource
import secrets
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from broca.errors import TaskUnusable
from broca.measurement import Plan
from broca.models import GatedModel
from broca.runs.run import Run, tokens_of
from broca.verification.trial import Places

TIMING = "timing"
"""Kind of the vector that holds the speed of a run."""

WARM_UP = 4
"""Rows that are measured before the timed ones."""
_SHARE = 0.05
"""Share of the components that are ablated in timed rows."""
_TIMED = 32
"""Number of rows that are timed in each response for a search with a time limit."""
_SURE = 0.8
"""Share of the time that is used for rows: speeds vary, and searches compute between plans."""


@dataclass(frozen=True)
class Speed:
    """The speed of a run, from timed rows.

    Attributes:
        tokens_per_second: Speed in `accuracy`, and in `probability` if the task's items have
            margins.
        rows: Number of timed rows.
        memory_bytes: Peak memory of the GPU, or of the process for a model on a CPU.
    """

    tokens_per_second: dict[str, float]
    rows: int
    memory_bytes: int


def speed_of(run: Run, *, sample: int) -> Speed:
    """Returns the speed at which a run measures rows of its task.

    The journal keeps it: a run that is resumed or repeated has the speed of its first process.

    Args:
        run: The run.
        sample: Number of rows to time for each response.
    """
    vector = run.once(TIMING, lambda: _timed(run, sample))
    accuracy, probability, rows, kibibytes = vector.tolist()
    speeds = {"accuracy": accuracy, "probability": probability}
    return Speed(
        {name: speed for name, speed in speeds.items() if speed}, int(rows), int(1024 * kibibytes)
    )


def rows_within(run: Run, seconds: float, places: Places) -> int:
    """Returns how many rows the model measures in a time, at the speed of the slower response.

    Args:
        run: The run whose rows are timed.
        seconds: The time.
        places: Positions of each measured task's items.
    """
    speed = min(speed_of(run, sample=_TIMED).tokens_per_second.values())
    tokens = [tokens_of(run.bank[place][1]) for items in places.values() for place in items]
    return int(_SURE * seconds * speed / float(np.mean(tokens)))


def _timed(run: Run, sample: int) -> NDArray[np.float32]:
    """Times rows under masks that no journal contains.

    Returns:
        Tokens a second in `accuracy` and in `probability` (0 without margins), the number of timed
        rows, and the peak memory in KiB, `(4,)`.
    """
    located = run.tasks.places["locate"][run.tasks.task]
    rng = np.random.default_rng(secrets.randbits(64))
    items = located[np.arange(sample) % len(located)]
    masks = rng.random((sample, len(run.model.components))) < _SHARE
    accuracy = _tokens_a_second(run, Plan(masks, np.arange(sample), items), rng)
    try:
        referenced = run.referenced("probability", {run.tasks.task: located}, otherwise=None)
        usable = np.isin(items, referenced.places[run.tasks.task])
    except TaskUnusable:
        usable = np.zeros(sample, dtype=bool)
    probability, rows = 0.0, int(usable.sum())
    if rows:
        plan = Plan(masks[usable], np.arange(rows), items[usable], response="probability")
        probability = _tokens_a_second(run, plan, rng)
    memory = peak_memory(run.model) / 1024
    return np.array([accuracy, probability, sample + rows, memory], dtype=np.float32)


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
