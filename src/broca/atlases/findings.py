"""Finds universal components, selections and clusters of a matrix, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.atlases.clusters import cluster
from broca.atlases.groups import count_groups
from broca.atlases.selecting import Contrast, contrasts
from broca.components import Component
from broca.recovery import interval
from broca.results.atlas import (
    Cluster,
    GroupTest,
    HeadSet,
    SelectedComponent,
    Selection,
    UniversalComponent,
)
from broca.verification.effects import EffectMatrix, universal


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
    by_component, by_task = cluster(core.T), cluster(core)
    columns = [int(active[place]) for place in by_component.order]
    columns += _remaining(columns, matrix.effects.mean(axis=0))
    rows = [int(usable[place]) for place in by_task.order]
    rows += _remaining(rows, np.arange(len(tasks)))
    differences = contrasts(matrix, k)
    bounds = interval(matrix.effects, matrix.resampled)

    def on_every_task(chosen: Sequence[int]) -> dict[str, float]:
        means = matrix.effects[:, list(chosen)].mean(axis=1)
        return {tasks[row]: float(means[row]) for row in rows}

    return Findings(
        rows=tuple(rows),
        columns=tuple(columns),
        universal=tuple(
            UniversalComponent(
                name=components[column],
                effect=float(matrix.effects[usable, column].mean()),
                hurts=tuple(tasks[row] for row in rows if matrix.hurts[row, column]),
                effects=on_every_task([column]),
            )
            for column in universal(matrix)
        ),
        selections=tuple(
            _selection(matrix, differences[row], tasks, components, bounds) for row in rows
        ),
        clusters=tuple(
            Cluster(
                tuple(components[active[place]] for place in members),
                on_every_task([int(active[place]) for place in members]),
            )
            for members in by_component.clusters
        ),
        task_clusters=tuple(
            tuple(tasks[usable[place]] for place in members) for members in by_task.clusters
        ),
    )


def _selection(
    matrix: EffectMatrix,
    contrast: Contrast,
    tasks: Sequence[str],
    components: Sequence[str],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Selection:
    """Returns the selection of a task; `bounds` are the ends of the effects' intervals."""
    row, (low, high) = contrast.task, bounds
    return Selection(
        task=tasks[row],
        controls=tuple(tasks[control] for control in contrast.controls),
        components=tuple(
            SelectedComponent(
                components[column],
                float(matrix.effects[row, column]),
                (float(low[row, column]), float(high[row, column])),
                float(contrast.values[column]),
                (float(contrast.low[column]), float(contrast.high[column])),
            )
            for column in contrast.selected
        ),
        reason=_reason(matrix, contrast),
    )


def keep_to_groups(
    selected: Mapping[str, Sequence[str]], group_sizes: Mapping[int, int], names: Sequence[str], *,
    seed: int,
) -> tuple[GroupTest | None, str]:  # fmt: skip
    """Tests whether the heads of each capability keep to key/value groups.

    Args:
        selected: Names of the selected components of each capability.
        group_sizes: Number of query heads of a key/value group, layer by layer.
        names: All components.
        seed: Seed of the permutations.

    Returns:
        The test, or None and the reason why it does not apply.
    """
    parts = [Component.parse(name) for name in names]
    heads = [
        (part.layer, part.index)
        for part in parts
        if part.kind == "head" and part.index is not None and part.layer in group_sizes
    ]
    if not heads:
        return None, "the components are not attention heads"
    layers = np.array([layer for layer, _ in heads])
    groups = np.array([index // group_sizes[layer] for layer, index in heads])
    if max(group_sizes.values()) == 1:
        return None, "every query head has keys and values of its own: there are no groups"
    if not any(len(np.unique(groups[layers == layer])) > 1 for layer in group_sizes):
        return None, "all query heads of a layer share one key/value head: there is one group"
    column = {f"L{layer}H{index}": place for place, (layer, index) in enumerate(heads)}
    sets = {
        capability: tuple(name for name in chosen if name in column)
        for capability, chosen in selected.items()
    }
    sets = {capability: chosen for capability, chosen in sets.items() if len(chosen) > 1}
    if not sets:
        return None, "no capability has two selected heads"
    count = count_groups(
        [[column[name] for name in chosen] for chosen in sets.values()],
        layers.astype(np.intp),
        groups.astype(np.intp),
        seed=seed,
    )
    test = GroupTest(
        group_size=max(group_sizes.values()),
        sets=tuple(HeadSet(capability, chosen) for capability, chosen in sets.items()),
        pairs=count.pairs,
        expected=count.expected,
        effect=count.effect,
        p=count.p,
        permutations=count.permutations,
    )
    return test, ""


def _remaining(placed: Sequence[int], keys: NDArray[np.generic]) -> list[int]:
    """Returns the positions that are not placed yet, ordered by their keys."""
    order = np.argsort(keys, kind="stable").tolist()
    return [position for position in order if position not in set(placed)]


def _reason(matrix: EffectMatrix, contrast: Contrast) -> str:
    if not matrix.usable[contrast.task]:
        return "the intact model cannot do the task"
    if not matrix.fits[contrast.task]:
        return "effects explain nothing of its rows on held-out masks: measure more `rows`"
    if contrast.selected:
        return ""
    if not contrast.controls:
        return f"no component significantly costs the task {matrix.least:g} or more"
    return (
        f"no component significantly costs the task {matrix.least:g} more than it costs the others"
    )
