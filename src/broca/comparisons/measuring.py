"""What is measured of one model: random masks, and the selections of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Plan, Response
from broca.results.base import ModelInfo
from broca.runs.provenance import model_info
from broca.runs.run import Run
from broca.searches.pilot import MOST_MASKS, pilot, spread_masks
from broca.verification import Trial

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """The rows that every model is measured on.

    Attributes:
        masks: One mask for each row, `(rows, components)`.
        items: For each task the item of every row, a position among its items, `(rows,)`.
        size: Components that a mask ablates, about.
    """

    masks: Bools
    items: Mapping[str, NDArray[np.intp]]
    size: int


@dataclass(frozen=True, eq=False)
class Measured:
    """What one model answered.

    Attributes:
        info: The model.
        changes: For each task, response minus the intact one of the same item, `(rows,)`.
        trial: The tasks and their report items.
        reported: For each task the per-item responses on the report items, intact and without
            every selection, `(1 + selections, items)`.
        at_chance: Tasks that the intact model cannot do.
    """

    info: ModelInfo
    changes: Mapping[str, Floats]
    trial: Trial
    reported: Mapping[str, Floats]
    at_chance: tuple[str, ...]


def draw_design(
    run: Run, *, rows: int, seed: int, response: Response, places: Mapping[str, NDArray[np.intp]]
) -> Design:
    """Draws the rows, with masks of the size that tells most about the first model.

    Every component is as likely in a mask as the others; every item is asked equally often.

    Args:
        run: A run on the first model.
        rows: Rows for each task.
        seed: Seed of masks and items.
        response: What rows return.
        places: Positions of each task's items.
    """
    components = len(run.model.components)
    rng = np.random.default_rng([seed, 0xC04])
    size = _size(run, components, response, places, rng)
    masks = spread_masks(size, rows, np.arange(components), components, rng)
    items = {
        name: np.concatenate(
            [rng.permutation(len(positions)) for _ in range(-(-rows // len(positions)))]
        )[:rows]
        for name, positions in places.items()
    }
    return Design(masks, items, size)


def _size(
    run: Run,
    components: int,
    response: Response,
    places: Mapping[str, NDArray[np.intp]],
    rng: np.random.Generator,
) -> int:
    """Components of a mask, from a short pilot on a few items of every task."""
    few = [positions[: max(2, MOST_MASKS // 4)] for positions in places.values()]
    items = np.concatenate(few)
    intact = run.measure(
        Plan.crossed(np.zeros((1, components), dtype=bool), items, response=response), role="search"
    ).responses

    def drops(masks: Bools):  # type: ignore[no-untyped-def]  # a generator of plans
        measured = yield Plan.crossed(masks, items, response=response)
        return measured.responses.reshape(len(masks), len(items)) - intact

    trial = pilot(drops, components, masks=MOST_MASKS, rng=rng)
    plan = next(trial)
    while True:
        try:
            plan = trial.send(run.measure(plan, role="search"))
        except StopIteration as end:
            return int(end.value[0])


def measure(
    run: Run,
    design: Design,
    selections: Sequence[Sequence[str]],
    *,
    response: Response,
    places: Mapping[str, NDArray[np.intp]],
) -> Measured:
    """Measures one model under the design's masks, and without each selection.

    Args:
        run: A run on the model.
        design: The rows.
        selections: Names of the components of each selection.
        response: What the rows of the design return.
        places: Positions of each task's items.
    """
    components = run.model.components
    none = np.zeros((1, len(components)), dtype=bool)
    changes = {}
    for name, positions in places.items():
        intact = run.measure(Plan.crossed(none, positions, response=response), role="search")
        items = design.items[name]
        plan = Plan(design.masks, np.arange(len(design.masks)), positions[items], response=response)
        changes[name] = run.measure(plan, role="search").responses - intact.responses[items]
    trial = run.tasks.trial()
    masks = np.stack([none[0], *(components.mask(names) for names in selections)])
    reported = trial.responses(run.measure, masks, trial.places)
    at_chance = tuple(
        name
        for name, values in reported.items()
        if trial.benchmarks[name].at_chance(trial.score(name, values[0]), items=values.shape[1])
    )
    return Measured(model_info(run.model), changes, trial, reported, at_chance)
