"""Measures models on the same rows, and estimates effects of components from them.

The change of a row's response from the intact response is the sum of the effects of its ablated
components, plus noise. The effects are estimated by least squares. Effects differ between items, so
that errors come from leaving out each item (the jackknife; where rows are few, cluster-robust ones
of Liang and Zeger, 1986, are too small). Two models on the same
rows are compared by the differences of their changes, in which common effects of rows and items
cancel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

from broca import designs, searches
from broca.errors import BadInput
from broca.measurement import Bools, Floats, Plan, Response
from broca.results.base import ModelInfo
from broca.runs.run import Run, model_info
from broca.searches.pilot import MOST_MASKS, pilot, spread_masks
from broca.verification import Trial
from broca.verification.trial import Places

ROWS_PER_COMPONENT = 6
"""Default number of rows with random masks for each component."""

FEWEST_PER_COMPONENT = 2
"""Minimum number of rows for each component."""

FEWEST_ITEMS = 10
"""Minimum number of items for errors between items."""

FEWEST_ROWS = 1000
"""Minimum default number of rows."""


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of every model.

    Attributes:
        response: Response of the rows.
        masks: One mask for each row, `(rows, components)`.
        items: Item of every row by task, as a position among its items, `(rows,)`.
        size: Approximate number of components that a mask ablates.
    """

    response: Response
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


def row_count(rows: int | None, components: int) -> int:
    """Returns the number of rows with random masks for each model and task.

    Raises:
        BadInput: The rows are too few for the components.
    """
    if rows is None:
        return max(FEWEST_ROWS, ROWS_PER_COMPONENT * components)
    if rows < FEWEST_PER_COMPONENT * components + FEWEST_ITEMS:
        raise BadInput(
            f"`rows` {rows} is too few to compare {components} components: give at least "
            f"{FEWEST_PER_COMPONENT * components + FEWEST_ITEMS}, or none for the default"
        )
    return rows


def draw_design(run: Run, *, rows: int, seed: int, response: Response, places: Places) -> Design:
    """Draws the rows, with masks of the most informative size for the first model.

    A short pilot on a few items of every task finds the size. All components are equally frequent
    in masks, and all items in rows.

    Args:
        run: A run on the first model.
        rows: Number of rows for each task.
        seed: Seed of masks and items.
        response: Response of the rows.
        places: Positions of each task's items.

    Raises:
        BadInput: A task has fewer than ten items, or the masks do not separate all components.
    """
    for name, positions in places.items():
        if len(positions) < FEWEST_ITEMS:
            raise BadInput(
                f"task '{name}' has {len(positions)} items for the masks: a comparison needs "
                f"{FEWEST_ITEMS}, so choose a task with more"
            )
    components = len(run.model.components)
    rng = np.random.default_rng([seed, 0xC04])
    few = np.concatenate([positions[: max(2, MOST_MASKS // 4)] for positions in places.values()])
    execute = partial(run.measure, role="search")
    intact = execute(Plan.crossed(designs.intact(components), few, response=response)).responses

    def drops(masks: Bools) -> searches.Search[Floats]:
        measured = yield Plan.crossed(masks, few, response=response)
        return measured.responses.reshape(len(masks), len(few)) - intact

    rounds = pilot(drops, components, masks=MOST_MASKS, rng=rng)
    size, _ = searches.run(rounds, execute)
    masks = spread_masks(size, rows, components, rng)
    with_intercept(masks)  # refuses masks that do not suffice, before they are measured
    items = {}
    for name, positions in places.items():
        drawn = [rng.permutation(len(positions)) for _ in range(-(-rows // len(positions)))]
        items[name] = np.concatenate(drawn)[:rows]
    return Design(response, masks, items, size)


def measure(
    run: Run, design: Design, selections: Sequence[Sequence[str]], *, places: Places
) -> Measured:
    """Measures a model under the design's masks, and without each selection.

    Args:
        run: A run on the model.
        design: The rows.
        selections: Names of the components of each selection.
        places: Positions of each task's items.
    """
    components, response = run.model.components, design.response
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
        if trial.guesses(name, trial.score(name, values[0]))
    )
    return Measured(model_info(run.model), changes, trial, reported, at_chance)


@dataclass(frozen=True, eq=False)
class EffectEstimates:
    """Effects of components with their standard errors.

    Attributes:
        values: The effects, `(components,)`.
        errors: Standard errors of the effects, `(components,)`.
        freedom: Degrees of freedom of their t-distribution: the number of items minus one.
    """

    values: Floats
    errors: Floats
    freedom: int

    def p_values(self) -> Floats:
        """Returns the two-sided p-values of no effect."""
        ratio = np.abs(self.values) / np.maximum(self.errors, 1e-300)  # none is no effect
        return np.asarray(2 * stats.t.sf(ratio, self.freedom))

    def with_ends(self, level: float) -> tuple[tuple[float, ...], ...]:
        """Returns the effects, then the lower and the upper ends of their intervals.

        They are not corrected over components.
        """
        reach = stats.t.ppf(1 - level / 2, self.freedom) * self.errors
        lines = self.values, self.values - reach, self.values + reach
        return tuple(tuple(line.tolist()) for line in lines)


def with_intercept(masks: Bools) -> Floats:
    """Returns a column of ones and those of the masks, `(rows, components + 1)`.

    Raises:
        BadInput: The masks do not separate all components.
    """
    design = np.column_stack([np.ones(len(masks)), masks.astype(np.float64)])
    rows, columns = design.shape
    if np.linalg.matrix_rank(design) < columns:
        raise BadInput(
            f"{rows} rows do not separate {columns - 1} components: give more `rows`, or more "
            "kinds of `components`"
        )
    return design


def estimate_effects(masks: Bools, changes: Floats, items: NDArray[np.intp]) -> EffectEstimates:
    """Estimates the effect of every component on a response.

    Args:
        masks: Ablated components of every row, `(rows, components)`.
        changes: Response minus the intact response of the same item, or the difference of two such
            changes, `(rows,)`.
        items: Item of every row, `(rows,)`.
    """
    kinds, cluster = np.unique(items, return_inverse=True)
    design = with_intercept(masks)
    inverse = linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ changes)
    residuals = changes - design @ coefficients
    scores = np.zeros((len(kinds), design.shape[1]))
    for number in range(len(kinds)):
        own, left = design[cluster == number], residuals[cluster == number]
        # what is left of an item's rows by the fit without them
        scores[number] = own.T @ linalg.lstsq(np.eye(len(own)) - own @ inverse @ own.T, left)[0]
    # coefficients minus those without an item, (items, components + 1)
    influence = scores @ inverse
    errors = np.sqrt((len(kinds) - 1) / len(kinds) * (influence**2).sum(axis=0))
    return EffectEstimates(coefficients[1:], errors[1:], len(kinds) - 1)
