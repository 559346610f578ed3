"""What the cells of a comparison say: one line for each method and budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from broca.studies.methods.cells import Cell
from broca.studies.methods.truth import Exhaustive, recovered, top_recall

RESAMPLES = 2000
CONFIDENCE = 0.9


class Truth(Protocol):
    """Knows the effect of every component alone."""

    def find(self, cell: Cell, response: str) -> Exhaustive | None:
        """The effects for a cell's task in a response; None where they were not measured."""


@dataclass(frozen=True)
class Line:
    """A method at a budget: means over the (task, seed) cells in which it ran.

    Attributes:
        model: Name of the model.
        method: Name of the method.
        budget: Rows for each measured task; None for what the method takes by itself.
        cells: Cells in which it ran.
        refused: Cells that it refused, which no mean counts.
        refusal: What it said in the first of them.
        specific: Mean specific drop; an abstention counts as 0, here as in the next two.
        low: Lower end of its 90 % bootstrap interval over cells.
        high: Upper end.
        drop: Mean drop.
        off_target: Mean off-target drop.
        abstained: Cells in which nothing was selected.
        rows: Mean rows of a search, all measured tasks together.
        seconds: Mean time of a search.
        recall: Mean share of the planted heads that were selected, where heads are planted.
        false: Mean number of selected heads that were not planted.
        clean: Share of the runs without such a head.
        top: Mean share of the exhaustive top k that was selected.
        coverage: Share of the intervals that hold the exhaustive effect.
        intervals: How many intervals.
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


def summarize(cells: Sequence[Cell], truth: Truth) -> list[Line]:
    """One line for each model, method and budget, in the order in which they first appear.

    Budgets of one method come together, the smallest first, `default` last.
    """
    groups: dict[tuple[str, str], dict[int | None, list[Cell]]] = {}
    for cell in cells:
        by_budget = groups.setdefault((cell.model, cell.key.method), {})
        by_budget.setdefault(cell.key.budget, []).append(cell)
    return [
        _line(model, method, budget, by_budget[budget], truth)
        for (model, method), by_budget in groups.items()
        for budget in sorted(by_budget, key=lambda one: (one is None, one or 0))
    ]


def bootstrap(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """90 % percentile interval of a mean, from 2,000 resamples; NaN without values."""
    if not len(values):
        return float("nan"), float("nan")
    known = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(known), size=(RESAMPLES, len(known)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(known[drawn].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def _line(model: str, method: str, budget: int | None, cells: Sequence[Cell], truth: Truth) -> Line:
    done = [cell for cell in cells if cell.done]
    turned_down = [cell for cell in cells if not cell.done]
    low, high = bootstrap([cell.specific for cell in done])
    sets = [found for cell in done if (found := recovered(cell)) is not None]
    tops = [
        recall
        for cell in done
        if (recall := top_recall(cell, truth.find(cell, "accuracy"))) is not None
    ]
    held = [
        exhaustive.held(cell)
        for cell in done
        if cell.intervals is not None
        and (exhaustive := truth.find(cell, cell.response)) is not None
    ]
    intervals = sum(count for _, count in held)
    return Line(
        model=model,
        method=method,
        budget=budget,
        cells=len(done),
        refused=len(turned_down),
        refusal=turned_down[0].refused if turned_down else "",
        specific=_mean([cell.specific for cell in done]),
        low=low,
        high=high,
        drop=_mean([cell.drop for cell in done]),
        off_target=_mean([cell.off_target for cell in done]),
        abstained=sum(cell.abstained for cell in done),
        rows=_mean([cell.rows for cell in done]),
        seconds=_mean([cell.seconds for cell in done]),
        recall=_mean([one.recall for one in sets]) if sets else None,
        false=_mean([one.false for one in sets]) if sets else None,
        clean=_mean([one.false == 0 for one in sets]) if sets else None,
        top=_mean(tops) if tops else None,
        coverage=sum(number for number, _ in held) / intervals if intervals else None,
        intervals=intervals,
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
