"""Summaries of the cells of a comparison, one for each method and budget, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from comparison import Cell, budget_name

COLUMNS = (
    "method",
    "rows a task",
    "specific drop (90 %)",
    "drop",
    "off-target",
    "none found",
    "rows",
    "s",
    "cells",
)
OPTIONAL = {
    "planted recall": "recall",
    "false": "false",
    "top-k recall": "top",
    "calibration": "coverage",
    "candidate ahead": "behind",
}
"""Columns that are shown if any summary has a value, with their fields."""

RESAMPLES = 2000
CONFIDENCE = 0.9


@dataclass(frozen=True)
class MethodSummary:
    """A method at a budget: means over the (task, seed) cells in which it ran.

    Attributes:
        model: Name of the model.
        method: Name of the method.
        budget: Rows for each measured task; None for the method's own budget.
        cells: Number of cells in which it ran.
        refused: Number of cells that it refused, which are excluded from means.
        refusal: Message of the first refusal.
        specific: Mean specific drop; an abstention counts as 0, also in `drop` and `off_target`.
        low: Lower end of its 90 % bootstrap interval over cells.
        high: Upper end of this interval.
        drop: Mean drop.
        off_target: Mean off-target drop.
        abstained: Number of cells in which nothing was selected.
        rows: Mean rows of a search, all measured tasks together.
        seconds: Mean time of a search.
        recall: Mean share of the planted heads that were selected, if heads are planted.
        false: Mean number of selected heads that were not planted.
        clean: Share of the runs without such heads.
        top: Mean share of the exhaustive top k that was selected.
        coverage: Share of the intervals that contain the exhaustive effect.
        intervals: Number of intervals.
        behind: Mean specific drop of the candidate at its default budget minus that of the method,
            over the (task, seed) cells that both have; None without such cells.
        shared: Number of cells that both have.
    """

    model: str
    method: str
    budget: int | None
    cells: int
    refused: int
    refusal: str
    specific: float
    low: float
    high: float
    drop: float
    off_target: float
    abstained: int
    rows: float
    seconds: float
    recall: float | None = None
    false: float | None = None
    clean: float | None = None
    top: float | None = None
    coverage: float | None = None
    intervals: int = 0
    behind: float | None = None
    shared: int = 0


def summarize(cells: Sequence[Cell], *, candidate: str = "") -> list[MethodSummary]:
    """Returns a summary for each model, method and budget, in the order of their first cells.

    The budgets of a method follow each other, the smallest first and `default` last.

    Args:
        cells: The cells.
        candidate: The method with which the others are compared; empty for none.
    """
    groups: dict[tuple[str, str], dict[int | None, list[Cell]]] = {}
    for cell in cells:
        by_budget = groups.setdefault((cell.model, cell.key.method), {})
        by_budget.setdefault(cell.key.budget, []).append(cell)
    return [
        _summary(
            model, method, budget, by_budget[budget],
            [] if method == candidate else groups.get((model, candidate), {}).get(None, []),
        )
        for (model, method), by_budget in groups.items()
        for budget in sorted(by_budget, key=lambda rows: (rows is None, rows or 0))
    ]  # fmt: skip


def shared_gap(first: Sequence[Cell], second: Sequence[Cell]) -> tuple[float, int]:
    """Returns the mean specific drop of first - second on common (task, seed), and their number."""
    second_drops = {(cell.key.task, cell.key.seed): cell.specific for cell in second if cell.done}
    gaps = [
        cell.specific - second_drops[cell.key.task, cell.key.seed]
        for cell in first
        if cell.done and (cell.key.task, cell.key.seed) in second_drops
    ]
    return mean(gaps), len(gaps)


def bootstrap(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Returns the 90 % percentile interval of a mean, from 2,000 resamples; NaN without values."""
    if not len(values):
        return float("nan"), float("nan")
    sample = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(sample), size=(RESAMPLES, len(sample)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(sample[drawn].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def _summary(
    model: str, method: str, budget: int | None, cells: Sequence[Cell], candidate: Sequence[Cell]
) -> MethodSummary:
    done = [cell for cell in cells if cell.done]
    refusals = [cell.refused for cell in cells if not cell.done]
    low, high = bootstrap([cell.specific for cell in done])
    false = [cell.false for cell in done if cell.false is not None]
    intervals = sum(cell.intervals for cell in done)
    gap, shared = shared_gap(candidate, done)
    return MethodSummary(
        model=model,
        method=method,
        budget=budget,
        cells=len(done),
        refused=len(refusals),
        refusal=refusals[0] if refusals else "",
        specific=mean([cell.specific for cell in done]),
        low=low,
        high=high,
        drop=mean([cell.drop for cell in done]),
        off_target=mean([cell.off_target for cell in done]),
        abstained=sum(cell.abstained for cell in done),
        rows=mean([cell.rows for cell in done]),
        seconds=mean([cell.seconds for cell in done]),
        recall=known_mean([cell.recall for cell in done]),
        false=known_mean(false),
        clean=known_mean([count == 0 for count in false]),
        top=known_mean([cell.top for cell in done]),
        coverage=sum(cell.held for cell in done) / intervals if intervals else None,
        intervals=intervals,
        behind=gap if shared else None,
        shared=shared,
    )


def mean(values: Sequence[float]) -> float:
    """Returns the mean; NaN without values."""
    return float(np.mean(values)) if len(values) else float("nan")


def known_mean(values: Sequence[float | None]) -> float | None:
    """Returns the mean of the values that are not None; None without such values."""
    numbers = [value for value in values if value is not None]
    return mean(numbers) if numbers else None


def columns(lines: Sequence[MethodSummary]) -> tuple[str, ...]:
    """Returns the columns of `texts_of`."""
    return (*COLUMNS, *(name for name in OPTIONAL if _shown(lines, name)))


def texts_of(line: MethodSummary, lines: Sequence[MethodSummary]) -> list[str]:
    """Returns a summary as text for each column; refusals are named."""
    first = [line.method, budget_name(line.budget)]
    count = str(line.cells) + (f" (+{line.refused} refused)" if line.refused else "")
    if not line.cells:
        figures = ["refused", "", "", "", "", "", count]
    else:
        figures = [
            f"{line.specific:.3f} ({line.low:.3f} to {line.high:.3f})",
            f"{line.drop:.3f}",
            f"{line.off_target:.3f}",
            str(line.abstained),
            f"{line.rows:,.0f}",
            f"{line.seconds:.1f}",
            count,
        ]
    figures += [
        figure_text(getattr(line, OPTIONAL[name])) for name in OPTIONAL if _shown(lines, name)
    ]
    return [*first, *figures]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(lines: Sequence[MethodSummary], name: str) -> bool:
    """Whether any summary has a value in a column."""
    return any(getattr(line, OPTIONAL[name]) is not None for line in lines)


def figure_text(value: float | None) -> str:
    """Returns a figure with two decimals; an empty text if it is unknown."""
    return "" if value is None or isnan(value) else f"{value:.2f}"
