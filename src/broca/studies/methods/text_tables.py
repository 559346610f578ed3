"""The figures of a comparison as rows of text, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from broca.studies.methods.cells import budget_name
from broca.studies.methods.simulations import SimulatedSummary
from broca.studies.methods.summary import MethodSummary

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
SIMULATED_COLUMNS = (
    "components", "scenario", "method", "rows", "recall", "top-5", "false", "specific", "best",
    "spent", "s", "problems",
)  # fmt: skip


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
    figures += [_figure(getattr(line, OPTIONAL[name])) for name in OPTIONAL if _shown(lines, name)]
    return [*first, *figures]


def simulated_texts(line: SimulatedSummary) -> list[str]:
    """Returns a summary of simulations as text for each of `SIMULATED_COLUMNS`."""
    count = str(line.cells) + (f" (+{line.refused} refused)" if line.refused else "")
    return [
        f"{line.components:,}",
        line.scenario,
        line.method,
        f"{line.rows:,}",
        _figure(line.recall) if line.cells else "refused",
        _figure(line.top) if line.cells else "",
        _figure(line.false),
        "" if line.specific is None else f"{line.specific:.3f}",
        "" if line.best is None else f"{line.best:.3f}",
        "" if isnan(line.spent) else f"{line.spent:,.0f}",
        "" if isnan(line.seconds) else f"{line.seconds:.1f}",
        count,
    ]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(lines: Sequence[MethodSummary], name: str) -> bool:
    """Whether any summary has a value in a column."""
    return any(getattr(line, OPTIONAL[name]) is not None for line in lines)


def _figure(value: float | None) -> str:
    return "" if value is None or isnan(value) else f"{value:.2f}"
