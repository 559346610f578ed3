"""Scores without selections, and tests whether tasks need the selections of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from broca.comparisons.measuring import Measured
from broca.results.base import Interval
from broca.results.comparison import Carried, Carry, ComparedSelection, SelectionScore
from broca.verification import statistics

HALF = 0.5
"""Minimum drop without another selection, as a share of the drop without the own selection, for
which the task needs it."""

RESAMPLES = 2000
"""Number of resamples of items for intervals."""


def scores(
    label: str,
    measured: Measured,
    selections: Sequence[ComparedSelection],
    *,
    level: float,
    seed: int,
) -> list[SelectionScore]:
    """Returns a model's scores on the report items, intact and without each selection."""
    lines = []
    for task, values in measured.reported.items():
        lines.append(SelectionScore(label, task, None, measured.trial.score(task, values[0])))
        for row, selection in enumerate(selections, start=1):
            drop = _drop(measured, task, row, level, seed)
            score = measured.trial.score(task, values[row])
            lines.append(SelectionScore(label, task, selection.label, score, drop))
    return lines


def carries(
    models: Sequence[tuple[str, Measured]],
    selections: Sequence[ComparedSelection],
    *,
    level: float,
    seed: int,
) -> tuple[Carry, ...]:
    """Tests whether tasks and models need the selections of others.

    The selection of a task in a model is tested on the same task in every other model, and on the
    tasks that other runs localized. P-values are Holm-corrected over all tests.
    """
    lines: list[Carry] = []
    for label, measured in models:
        for task in measured.reported:
            own_row = next(
                (
                    row
                    for row, selection in enumerate(selections, start=1)
                    if (selection.model, selection.task) == (label, task)
                ),
                None,
            )
            for row, selection in enumerate(selections, start=1):
                concerns = own_row is not None or selection.task in (None, task)
                if row == own_row or not concerns:
                    continue
                lines.append(_carry(label, task, measured, row, own_row, selections, level, seed))
    adjusted = statistics.holm([line.p for line in lines])
    return tuple(
        replace(line, p=p, carried=_answer(line, p, level))
        for line, p in zip(lines, adjusted, strict=True)
    )


def _drop(measured: Measured, task: str, row: int, level: float, seed: int) -> Interval:
    """Returns the drop of a task without the selection of a row."""
    values = measured.reported[task]
    return statistics.bootstrap_interval(
        values[0], values[row], level=level, resamples=RESAMPLES, seed=seed,
        aggregate=measured.trial.aggregation(task, values[0]),
    )  # fmt: skip


def _carry(
    label: str,
    task: str,
    measured: Measured,
    row: int,
    own_row: int | None,
    selections: Sequence[ComparedSelection],
    level: float,
    seed: int,
) -> Carry:
    values = measured.reported[task]
    aggregate = measured.trial.aggregation(task, values[0])
    return Carry(
        selection=selections[row - 1].label,
        model=label,
        task=task,
        drop=_drop(measured, task, row, level, seed),
        own_selection=None if own_row is None else selections[own_row - 1].label,
        share=None if own_row is None else drop_share(
            values[0], values[row], values[own_row], aggregate=aggregate, level=level, seed=seed
        ),
        p=statistics.paired_test(values[0], values[row], seed=seed)[1],
        carried="undecided",
    )  # fmt: skip


def drop_share(
    before: statistics.Values,
    after: statistics.Values,
    after_own: statistics.Values,
    *,
    aggregate: statistics.Aggregate | None = None,
    level: float = 0.05,
    seed: int = 0,
) -> Interval | None:
    """Returns a drop as a share of another drop, resampled over the same items.

    Args:
        before: Scores of the items on the intact model, `(items,)`.
        after: Scores of the items with one selection ablated.
        after_own: Scores of the items with the other selection ablated.
        aggregate: The task's aggregation if it is not the mean.
        level: Level of the interval.
        seed: Seed of the resamples.

    Returns:
        The share; None if the other drop is not significantly above zero.
    """
    score = aggregate or _mean
    draws, own_draws = (
        statistics.bootstrap_drops(before, values, resamples=RESAMPLES, seed=seed, aggregate=score)
        for values in (after, after_own)  # the same seed draws the same items for both
    )
    every = np.arange(len(before))
    drop, own_drop = (score(before, every) - score(values, every) for values in (after, after_own))
    if own_drop <= 0 or np.quantile(own_draws, level / 2) <= 0:
        return None
    usable = own_draws > 0
    return statistics.interval_of(drop / own_drop, draws[usable] / own_draws[usable], level=level)


def _mean(values: statistics.Values, _drawn: object) -> float:
    return float(values.mean())


def _answer(line: Carry, p: float, level: float) -> Carried:
    lost = p <= level and line.drop.value > 0
    if line.own_selection is None:
        return "yes" if lost else "undecided"
    if line.share is None:
        return "undecided"
    if lost:
        return "yes" if line.share.value >= HALF else "in part"
    return "no" if line.share.high < HALF else "undecided"
