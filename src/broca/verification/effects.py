"""Effects of single components on tasks, universal components, and interactions of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Bools, Execute, Floats, Ints, Plan
from broca.recovery.joint import highest, interval
from broca.results.localization import Interaction

LEAST = 0.05
"""Smallest effect that counts, in the response."""

MOST = 2 / 3
"""Minimum share of the tasks, and of their capabilities, that a universal component hurts."""

EVEN = 0.5
"""Minimum mean loss of the other capabilities without a universal component, as a share of the loss
of the capability that it hurts most."""

EXPLAINED = 0.01
"""Minimum share of the variance of a task's held-out rows that valid effects explain."""

MOST_PAIRED = 20
"""Maximum number of components whose pairs are measured; 20 have 190 pairs."""


@dataclass(frozen=True, eq=False)
class EffectMatrix:
    """Effects of every component on every task.

    Attributes:
        effects: Change of the response, negative where the task needs the component,
            `(tasks, components)`.
        resampled: Effects on resampled masks, `(resamples, tasks, components)`.
        usable: Whether the intact model can do each task; other tasks can show no damage,
            `(tasks,)`.
        capabilities: Capability that each task measures.
        explained: Share of each task's variance on held-out masks that the effects explain,
            `(tasks,)`; None if components were ablated one by one, without a regression.
    """

    effects: Floats
    resampled: Floats
    usable: Bools
    capabilities: tuple[str, ...]
    explained: Floats | None = None

    @property
    def fits(self) -> Bools:
        """Whether the effects explain any of a task's variance, `(tasks,)`."""
        if self.explained is None:
            return np.ones(len(self.effects), dtype=bool)
        fits: Bools = self.explained >= EXPLAINED
        return fits

    @property
    def hurts(self) -> Bools:
        """Whether each ablation significantly costs each task, without correction."""
        _, high = interval(self.effects, self.resampled)
        shown = (self.usable & self.fits)[:, None]
        hurts: Bools = (high < 0) & (self.effects <= -LEAST) & shown
        return hurts

    @property
    def sure(self) -> Bools:
        """Whether each ablation significantly costs each task, corrected over its components."""
        sure: Bools = (highest(self.effects, self.resampled) < 0) & self.hurts
        return sure


def universal(matrix: EffectMatrix) -> list[int]:
    """Returns the columns of components that most tasks need to about the same degree, worst first.

    A universal component hurts two thirds of the usable tasks. It costs two thirds of their
    capabilities significantly more than a negligible amount, as the mean of a capability's tasks.
    The mean loss of the capabilities other than the most hurt is at least `EVEN` of the loss of
    that capability, because a component that one capability needs far more than the others belongs
    to it. With a single capability no component is universal.
    """
    capabilities = np.array(matrix.capabilities)
    names = np.unique(capabilities[matrix.usable])
    if len(names) < 2:
        return []
    rows = [np.flatnonzero(matrix.usable & (capabilities == name)) for name in names]
    pooled = np.stack([matrix.effects[tasks].mean(axis=0) for tasks in rows])
    resampled = np.stack([matrix.resampled[:, tasks].mean(axis=1) for tasks in rows], axis=1)
    _, high = interval(pooled, resampled)
    reached = (high < 0) & (pooled <= -LEAST)
    most = -pooled.min(axis=0)
    others = (-pooled.sum(axis=0) - most) / (len(names) - 1)
    everywhere = (
        (matrix.hurts.sum(axis=0) >= MOST * matrix.usable.sum())
        & (reached.sum(axis=0) >= MOST * len(names))
        & (others >= EVEN * most)
    )
    order = np.argsort(matrix.effects[matrix.usable].mean(axis=0), kind="stable")
    return [int(column) for column in order if everywhere[column]]


def require_count(count: int, components: int) -> None:
    """Refuses a number of components that has no pairs or too many.

    Args:
        count: Number of leading components; 0 for none.
        components: Number of components of the model.

    Raises:
        BadInput: The number is 1, negative, more than `MOST_PAIRED` or more than the model has.
    """
    most = min(MOST_PAIRED, components)
    if count and not 2 <= count <= most:
        raise BadInput(
            f"`interactions` {count} names no pairs: use 0 for none, or 2 to {most} leading "
            "components"
        )


def pairwise(
    names: Sequence[str],
    columns: Sequence[int],
    items: Ints,
    execute: Execute,
) -> tuple[Interaction, ...]:
    """Measures the interactions of all pairs of some components.

    Every item is measured intact, without each component, and without each pair:
    (1 + n + n (n - 1) / 2) x items rows for n components.

    Args:
        names: Names of all components, by column.
        columns: The components whose pairs are measured.
        items: Positions of the items, preferably items that were not used to select the components.
        execute: Measures a plan.

    Returns:
        The pairs, the strongest interaction first.
    """
    if not len(columns):
        return ()
    pairs = list(combinations(range(len(columns)), 2))
    sets = [(), *((column,) for column in columns), *combinations(columns, 2)]
    masks = designs.of_sets(sets, len(names))
    responses = execute(Plan.crossed(masks, items)).responses.reshape(len(masks), -1)
    changes = responses[1:] - responses[0]  # (masks - 1, items)
    alone, together = changes[: len(columns)], changes[len(columns) :]
    span = float(responses.max() - responses.min())
    interactions = []
    for (first, second), joint in zip(pairs, together, strict=True):
        beyond = joint - alone[first] - alone[second]
        interactions.append(
            Interaction(
                first=names[columns[first]],
                second=names[columns[second]],
                first_effect=float(alone[first].mean()),
                second_effect=float(alone[second].mean()),
                joint_effect=float(joint.mean()),
                interaction=float(beyond.mean()),
                ci=_interval(beyond, span),
            )
        )
    return tuple(sorted(interactions, key=lambda pair: -abs(pair.interaction)))


def _interval(values: Floats, span: float) -> tuple[float, float]:
    """Returns the 90 % interval of a mean by Student's t.

    Args:
        values: A value for each item.
        span: The range of responses. A pseudo-item that deviates by it gives the interval of equal
            values a width.
    """
    from scipy.stats import t

    count = len(values)
    spread = np.sqrt((values.var() * count + span**2) / (count + 1))
    half = float(t.ppf(0.95, count) * spread / np.sqrt(count))
    mean = float(values.mean())
    return mean - half, mean + half
