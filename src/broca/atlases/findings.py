"""Findings of a matrix: universal components, selections and clusters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist

from broca.measurement import Bools, Floats
from broca.recovery.joint import highest, interval
from broca.results.atlas import Cluster, SelectedComponent, Selection, UniversalComponent

LEAST = 0.05
"""Smallest effect that counts, in the response."""

MOST = 2 / 3
"""Minimum share of the tasks, and of their capabilities, that a universal component hurts."""

EVEN = 0.5
"""Minimum mean loss of the other capabilities without a universal component, as a share of the loss
of the capability that it hurts most."""

EXPLAINED = 0.01
"""Minimum share of the variance of a task's held-out rows that valid effects explain."""


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
            `(tasks,)`.
    """

    effects: Floats
    resampled: Floats
    usable: Bools
    capabilities: tuple[str, ...]
    explained: Floats

    @property
    def fits(self) -> Bools:
        """Whether the effects explain any of a task's variance, `(tasks,)`."""
        return self.explained >= EXPLAINED

    @property
    def hurts(self) -> Bools:
        """Whether each ablation significantly costs each task, without correction."""
        _, high = interval(self.effects, self.resampled)
        shown = (self.usable & self.fits)[:, None]
        return (high < 0) & (self.effects <= -LEAST) & shown

    @property
    def sure(self) -> Bools:
        """Whether each ablation significantly costs each task, corrected over its components."""
        return (highest(self.effects, self.resampled) < 0) & self.hurts


def universal(matrix: EffectMatrix) -> list[int]:
    """Returns the columns of components that most tasks need to about the same degree, worst first.

    A universal component hurts two thirds of the usable tasks. It costs two thirds of their
    capabilities significantly, and `LEAST` or more, as the mean of a capability's tasks.
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


APART = 0.5
"""Mean cosine distance above which clusters are not joined: an angle of 60 degrees."""


@dataclass(frozen=True)
class Findings:
    """The findings of a matrix, with the displayed order of rows and columns.

    Attributes:
        rows: Rows of the measured matrix, in the displayed order.
        columns: Columns of the measured matrix, in the displayed order.
        universal: Components that most tasks need to about the same degree.
        selections: Selection of each task, in the displayed order.
        clusters: Clusters of components.
        task_clusters: Clusters of tasks.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    universal: tuple[UniversalComponent, ...]
    selections: tuple[Selection, ...]
    clusters: tuple[Cluster, ...]
    task_clusters: tuple[tuple[str, ...], ...]


def find(
    matrix: EffectMatrix, tasks: Sequence[str], components: Sequence[str], *, k: int
) -> Findings:
    """Finds universal components, selections and clusters of a matrix.

    Components that significantly hurt a task are clustered by their effects on the tasks that the
    model can do, and these tasks by the effects of those components.

    Args:
        matrix: The effects.
        tasks: Names of its rows.
        components: Names of its columns.
        k: Maximum number of components of a selection.
    """
    active = np.flatnonzero(matrix.sure.any(axis=0))
    usable = np.flatnonzero(matrix.usable)
    core = matrix.effects[np.ix_(usable, active)]
    by_component = [active[members].tolist() for members in clusters_of(core.T)]
    by_task = [usable[members].tolist() for members in clusters_of(core)]
    columns = _completed(by_component, matrix.effects.mean(axis=0))
    rows = _completed(by_task, np.arange(len(tasks)))

    def on_every_task(chosen: Sequence[int]) -> dict[str, float]:
        means = matrix.effects[:, list(chosen)].mean(axis=1)
        return {tasks[row]: float(means[row]) for row in rows}

    everywhere = []
    for column in universal(matrix):
        effect = float(matrix.effects[usable, column].mean())
        hurts = tuple(tasks[row] for row in rows if matrix.hurts[row, column])
        part = UniversalComponent(components[column], effect, hurts, on_every_task([column]))
        everywhere.append(part)
    selections = tuple(_selection(matrix, row, tasks, components, k) for row in rows)
    clusters = tuple(
        Cluster(tuple(components[column] for column in members), on_every_task(members))
        for members in by_component
    )
    task_clusters = tuple(tuple(tasks[row] for row in members) for members in by_task)
    return Findings(
        tuple(rows), tuple(columns), tuple(everywhere), selections, clusters, task_clusters
    )


def clusters_of(profiles: NDArray[np.float64]) -> list[list[int]]:
    """Clusters rows by the direction of their profiles, regardless of their length.

    It uses average linkage of cosine distances, with optimal ordering of the leaves, so that
    similar rows are neighbours.

    Args:
        profiles: Profiles, `(rows, features)`; rows of zeros have no profile and are left out.
    """
    rows = np.flatnonzero(np.linalg.norm(profiles, axis=1) > 0)
    if len(rows) < 2:
        return [[row] for row in rows.tolist()]
    # the distance of equal directions may be slightly negative by rounding
    distances = np.maximum(pdist(profiles[rows], "cosine"), 0.0)
    tree = linkage(distances, "average", optimal_ordering=True)
    labels = fcluster(tree, APART, "distance")
    clusters: dict[int, list[int]] = {}
    for leaf in leaves_list(tree).tolist():
        clusters.setdefault(int(labels[leaf]), []).append(int(rows[leaf]))
    return list(clusters.values())


def _completed(clusters: Sequence[Sequence[int]], keys: NDArray[np.generic]) -> list[int]:
    """Returns the members of all clusters, then the other positions, ordered by their keys."""
    placed = [position for members in clusters for position in members]
    order = np.argsort(keys, kind="stable").tolist()
    return placed + [position for position in order if position not in set(placed)]


def _selection(
    matrix: EffectMatrix, task: int, tasks: Sequence[str], components: Sequence[str], k: int
) -> Selection:
    """Selects the components that a task needs more than the usable tasks of other capabilities.

    They hurt the task and cost it significantly at least `LEAST` more than the others, corrected
    over all components. A task that the intact model cannot do has no selection.
    """
    others = np.array(matrix.capabilities) != matrix.capabilities[task]
    controls = np.flatnonzero(matrix.usable & others).tolist()
    contrast, resampled = matrix.effects[task], matrix.resampled[:, task]
    bounds = np.stack(interval(matrix.effects[task], resampled), axis=1).tolist()
    if controls:
        contrast = contrast - matrix.effects[controls].mean(axis=0)
        resampled = resampled - matrix.resampled[:, controls].mean(axis=1)
    contrast_bounds = np.stack(interval(contrast, resampled), axis=1).tolist()
    sure = (contrast <= -LEAST) & (highest(contrast, resampled) < 0)
    eligible = matrix.hurts[task] & sure
    order = np.argsort(contrast, kind="stable").tolist()
    selected = [column for column in order if eligible[column]][:k]
    reason = ""
    if not matrix.usable[task]:
        reason = "the intact model cannot do the task"
    elif not matrix.fits[task]:
        reason = "effects explain nothing of its rows on held-out masks: measure more `rows`"
    elif not selected:
        beyond = "more than it costs the others" if controls else "or more"
        reason = f"no component significantly costs the task {LEAST:g} {beyond}"
    parts = tuple(
        SelectedComponent(
            name=components[column],
            effect=float(matrix.effects[task, column]), ci=tuple(bounds[column]),
            contrast=float(contrast[column]), contrast_ci=tuple(contrast_bounds[column]),
        )
        for column in selected
    )  # fmt: skip
    return Selection(tasks[task], tuple(tasks[control] for control in controls), parts, reason)
