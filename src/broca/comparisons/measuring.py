"""Measures a model: random masks, and the selections of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from broca import designs, searches
from broca.measurement import Plan, Response
from broca.results.base import ModelInfo
from broca.runs.run import Run, model_info
from broca.searches.pilot import MOST_MASKS, pilot, spread_masks
from broca.verification import Trial

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of every model.

    Attributes:
        masks: One mask for each row, `(rows, components)`.
        items: Item of every row by task, as a position among its items, `(rows,)`.
        size: Approximate number of components that a mask ablates.
    """

    masks: Bools
    items: Mapping[str, NDArray[np.intp]]
    size: int


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of a model.

    Attributes:
        info: The model.
        changes: Response minus the intact response of the same item, by task, `(rows,)`.
        trial: The tasks and their report items.
        reported: Responses to the report items by task, intact and without every selection, `(1 +
            selections, items)`.
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
    """Draws the rows, with masks of the most informative size for the first model.

    All components are equally frequent in masks, and all items in rows.

    Args:
        run: A run on the first model.
        rows: Number of rows for each task.
        seed: Seed of masks and items.
        response: Response of the rows.
        places: Positions of each task's items.
    """
    components = len(run.model.components)
    rng = np.random.default_rng([seed, 0xC04])
    size = _size(run, components, response, places, rng)
    masks = spread_masks(size, rows, components, rng)
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
    """Returns the size of masks, from a short pilot on a few items of every task."""
    items = np.concatenate([positions[: max(2, MOST_MASKS // 4)] for positions in places.values()])
    execute = partial(run.measure, role="search")
    intact = execute(Plan.crossed(designs.intact(components), items, response=response)).responses

    def drops(masks: Bools):  # type: ignore[no-untyped-def]  # a generator of plans
        measured = yield Plan.crossed(masks, items, response=response)
        return measured.responses.reshape(len(masks), len(items)) - intact

    rounds = pilot(drops, components, masks=MOST_MASKS, rng=rng)
    size, _ = searches.run(rounds, execute)
    return size


def measure(
    run: Run,
    design: Design,
    selections: Sequence[Sequence[str]],
    *,
    response: Response,
    places: Mapping[str, NDArray[np.intp]],
) -> Measured:
    """Measures a model under the design's masks, and without each selection.

    Args:
        run: A run on the model.
        design: The rows.
        selections: Names of the components of each selection.
        response: Response of the rows of the design.
        places: Positions of each task's items.
    """
    components = run.model.components
    intact_mask = designs.intact(len(components))
    changes = {}
    for name, positions in places.items():
        intact = run.measure(Plan.crossed(intact_mask, positions, response=response), role="search")
        items = design.items[name]
        plan = Plan(design.masks, np.arange(len(design.masks)), positions[items], response=response)
        changes[name] = run.measure(plan, role="search").responses - intact.responses[items]
    trial = run.tasks.trial()
    masks = np.vstack([intact_mask, *(components.mask(names) for names in selections)])
    reported = trial.responses(run.measure, masks, trial.places)
    at_chance = tuple(
        name
        for name, values in reported.items()
        if trial.benchmarks[name].at_chance(trial.score(name, values[0]), items=values.shape[1])
    )
    return Measured(model_info(run.model), changes, trial, reported, at_chance)
