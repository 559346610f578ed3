"""Sets that grow by steps: the slopes of the gates name components, and rows choose one."""

import numpy as np

from broca.measurement import GRADIENT_ROW, Bools, Ints
from broca.searches.pooled.measurer import LossMeasurer
from broca.searches.problem import Search

_TRIED = 8
"""Number of components that a step compares."""
_EXCHANGE = 200
"""Rows for each step. If there are more, further steps exchange a member or leave the set as it is;
rows for twice the steps of a set grow another one."""
_EXCHANGES = 9
"""Maximum number of such further steps: on SmolLM2 nine found more than three of more rows each
(experiments/LOG.md)."""
_LEAVING = 2
"""Number of members of which such a step may exchange one, those of the smallest slopes."""
_STEP_SLOPES = 10
"""Maximum number of items of the slopes of a step, of the task and as many of the others."""
_TEXTS = 4
"""Maximum number of sentences of neutral text on which a step compares its last sets."""
_STEP_ROWS = 18
"""Minimum number of rows of a step, with other tasks twice as many."""


def grow_sets(measurer: LossMeasurer, rows: int, steepest: Ints) -> Search[tuple[Bools, Ints]]:
    """Grows as many sets of k components as the rows allow, at least one.

    Args:
        measurer: Measures the steps.
        rows: Number of rows for all sets.
        steepest: All components, the largest slopes at the intact model first.

    Returns:
        The sets, `(sets, components)`, and all components that a step tried.
    """
    number = max(1, rows // (_EXCHANGE * (measurer.problem.k + _EXCHANGES)))
    grown, tried = [], np.zeros(0, dtype=np.intp)
    for _ in range(number):
        members, new = yield from _grow(measurer, rows // number, steepest)
        grown.append(members)
        tried = np.union1d(tried, new)
    return np.array(grown), tried


def steepest_first(measurer: LossMeasurer, mask: Bools, items: int) -> Search[Ints]:
    """Orders components by their slopes with a set ablated, the largest first.

    Half of them have the largest slopes of the task, and the others the largest of the task minus
    those of the other tasks.

    Args:
        measurer: Measures the slopes.
        mask: The set, `(components,)`.
        items: Number of items of the task, and of the others.
    """
    task, others = yield from measurer.slopes(mask, items)
    ranks = [np.argsort(np.argsort(-harm, kind="stable")) for harm in (task, task - others)]
    return np.argsort(np.min(ranks, axis=0), kind="stable")


def _grow(measurer: LossMeasurer, rows: int, steepest: Ints) -> Search[tuple[Bools, Ints]]:
    """Grows a set by one component at a time.

    Backups have no slope at the intact model, and have one where what they back up is ablated.
    What the others gain by a set does not count. Once the set is full, members whose gates change
    the answers least when they begin to open may be exchanged.
    """
    k, both = measurer.problem.k, 2 if measurer.problem.others else 1
    steps = int(np.clip(rows // _EXCHANGE, k, k + _EXCHANGES))
    steps = min(steps, max(1, rows // (_STEP_ROWS * both)))
    rows //= steps * both
    slopes = max(1, min(_STEP_SLOPES, rows // 10))
    texts = min(_TEXTS, len(measurer.problem.texts), rows // 25)
    items = (rows - GRADIENT_ROW * slopes - (_TRIED // 2 + 1) * texts // both) // 2
    members, tried = np.zeros(measurer.problem.components, dtype=bool), steepest[:0]
    for step in range(steps):
        if step:
            steepest = yield from steepest_first(measurer, members, slopes)
        inside = members[steepest]
        new = steepest[~inside][:_TRIED]
        tried = np.union1d(tried, new)
        sets = members | (new[:, None] == np.arange(len(members)))
        if step >= k:
            leaving = np.resize(steepest[inside][-_LEAVING:], len(new))
            sets[np.arange(len(new)), leaving] = False
            sets = np.vstack([sets, members])
        task, specific = (np.zeros((len(sets), 0)) for _ in range(2))
        for kept in (_TRIED // 2, 1):
            broken = yield from measurer.broken(sets, texts if kept == 1 else 0)
            met = yield from measurer.crossed(sets, max(1, items // len(sets)), "steps")
            task, specific = np.hstack([task, met.task]), np.hstack([specific, met.specific])
            worth = np.minimum(task.mean(axis=1), specific.mean(axis=1)) - broken
            better = np.argsort(-worth, kind="stable")[:kept]
            sets, task, specific = sets[better], task[better], specific[better]
        members = sets[0]
    return members, tried
