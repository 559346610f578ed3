"""Atlas: estimates every component's effect on every task, from the same random masks.

Every mask is measured on one item of each task. The losses of two tasks can then be compared mask
by mask, and resampling masks gives intervals of their differences too. An atlas is a screen of
single components; it does not test sets.

1. the intact model answers the items that will be used: their fixed effects;
2. a pilot over all tasks finds the share of components that masks ablate;
3. fresh masks, each on one item of every task;
4. the effects of all tasks by one regression, and again on masks drawn anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Bools, Floats, Ints, Plan
from broca.recovery.joint import JointEffects, joint_effects
from broca.searches.pilot import pilot, spread_masks
from broca.searches.problem import Search

ROWS_PER_TASK = 800
"""Rows for each task if no budget is given."""

FEWEST_ROWS = 200
"""Minimum number of rows for each task; with fewer, intervals are meaningless."""

_INTACT = 0.125
"""Share of the budget for the intact model."""

_RESAMPLES = 200
"""Number of resamples of the masks, for intervals."""


@dataclass(frozen=True, eq=False)
class AtlasProblem:
    """The problem of an atlas.

    Attributes:
        components: Number of components.
        tasks: Positions of every task's items in the bank, by its name.
        rows: Maximum number of rows.
        seed: Seed of all random draws.
    """

    components: int
    tasks: Mapping[str, Ints]
    rows: int
    seed: int


@dataclass(frozen=True, eq=False)
class MeasuredAtlas:
    """The measurements of an atlas, and the effects of every component on every task.

    Attributes:
        tasks: Names of the tasks, in the order of the problem.
        masks: The fresh masks, `(masks, components)`.
        changes: Response minus the intact response of the same item, `(masks, tasks)`.
        items: Number of items of each task that were used, `(tasks,)`.
        joint: The effects, their resamples, and their fit.
    """

    tasks: tuple[str, ...]
    masks: Bools
    changes: Floats
    items: tuple[int, ...]
    joint: JointEffects


def atlas_rows(rows: int | None, tasks: int) -> int:
    """Returns the maximum number of rows of an atlas.

    Raises:
        BadInput: The rows are too few.
    """
    if rows is not None and rows < FEWEST_ROWS * tasks:
        raise BadInput(
            f"`rows` {rows} is too few for an atlas of {tasks} tasks: it needs "
            f"at least {FEWEST_ROWS * tasks}, {FEWEST_ROWS} for each; use more rows or fewer "
            "tasks"
        )
    return ROWS_PER_TASK * tasks if rows is None else rows


def measure_atlas(problem: AtlasProblem) -> Search[MeasuredAtlas]:
    """Estimates the effect of every component on every task."""
    per_task = problem.rows // len(problem.tasks)
    rng = np.random.default_rng([problem.seed, 0xA71A5])
    most = max(4, int(_INTACT * per_task))
    pools = [rng.permutation(items)[:most] for items in problem.tasks.values()]
    items = np.concatenate(pools)
    plan = Plan.crossed(designs.intact(problem.components), items)
    intact = np.full(int(items.max()) + 1, np.nan)
    intact[items] = (yield plan).responses
    spent = len(plan)
    decks: list[list[int]] = [[] for _ in pools]

    def changes(masks: Bools) -> Search[Floats]:
        """Measures every mask on an item of each task, `(masks, tasks)`."""
        nonlocal spent
        drawn = []
        for deck, pool in zip(decks, pools, strict=True):  # items come equally often
            while len(deck) < len(masks):
                deck += rng.permutation(pool).tolist()
            drawn.append(deck[: len(masks)])
            del deck[: len(masks)]
        items = np.array(drawn, dtype=np.intp).T
        index = np.repeat(np.arange(len(masks)), len(decks))
        plan = Plan(masks, index, items.ravel())
        spent += len(plan)
        lost: Floats = (yield plan).responses.reshape(items.shape) - intact[items]
        return lost

    size, _ = yield from pilot(changes, problem.components, masks=max(2, per_task // 100), rng=rng)
    rows = (per_task * len(decks) - spent) // len(decks)
    masks = spread_masks(size, rows, problem.components, rng)
    changed = yield from changes(masks)
    joint = joint_effects(masks, changed, resamples=_RESAMPLES, rng=rng)
    used = tuple(map(len, pools))
    return MeasuredAtlas(tuple(problem.tasks), masks, changes=changed, items=used, joint=joint)
