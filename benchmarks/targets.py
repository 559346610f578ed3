"""The targets of the default method, judged on the cells of the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from comparison import Cell, budget_name
from simulations import SimulatedSummary
from summaries import MethodSummary, shared_gap

STUDIED = ("pooled",)
"""The default method, and the one that these targets were set for."""
AHEAD_OF_GREEDY = 0.2
ROWS_PER_TASK = 800
"""Maximum rows for each task: a 25th of 200 masks x 100 items."""
RECALL = 0.95
CLEAN = 0.9
DAMAGE = 0.1
COVERAGE = (0.85, 0.95)
SIMULATED = {1024: 1000, 8192: 3000}
"""Rows for each number of components."""
SCENARIO = "heavy"

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Target:
    """A target and its result.

    Attributes:
        letter: Letter that names the target.
        model: Model on which it is judged; empty for simulations.
        claim: The target in words.
        reached: Whether it is reached; None if the cells do not show it.
        figures: The measured figures.
    """

    letter: str
    model: str
    claim: str
    reached: bool | None
    figures: str

    def __str__(self) -> str:
        verdict = {True: "reached", False: "NOT reached", None: "not measured"}[self.reached]
        where = f" on {self.model}" if self.model else ""
        return f"({self.letter}){where} {self.claim}: {verdict}. {self.figures}"


def targets(
    cells: Sequence[Cell],
    summaries: Sequence[MethodSummary],
    simulated: Sequence[SimulatedSummary],
    *,
    candidate: str,
) -> list[Target]:
    """Returns all targets; those about models once for each model."""
    judged = []
    for model in dict.fromkeys(cell.model for cell in cells):
        of_model = [cell for cell in cells if cell.model == model]
        candidate_cells = [
            cell
            for cell in of_model
            if cell.done and cell.key.method == candidate and cell.key.budget is None
        ]
        lines = [line for line in summaries if line.model == model]
        judged += [
            _ahead(model, of_model, candidate_cells),
            _planted(model, candidate_cells),
            _abstains(model, of_model, candidate_cells),
            _calibrated(model, lines, candidate),
        ]
    judged.append(_simulated(simulated, candidate))
    return sorted(judged, key=lambda target: target.letter)


def _ahead(model: str, cells: Sequence[Cell], candidate_cells: Sequence[Cell]) -> Target:
    claim = (
        f"specific drop {AHEAD_OF_GREEDY:.2f} above greedy, at or above every other method at its "
        f"best budget, within {ROWS_PER_TASK} rows a task"
    )
    rivals = _best_budgets(cells, without={cell.key.method for cell in candidate_cells})
    if not candidate_cells or "greedy" not in rivals:
        return Target("a", model, claim, None, "cells of greedy and of the method are needed")
    spent = max(cell.rows / (1 + len(cell.key.others)) for cell in candidate_cells)
    gaps = {
        method: shared_gap(candidate_cells, rival_cells) for method, rival_cells in rivals.items()
    }
    compared = {method: gap for method, (gap, count) in gaps.items() if count}
    nearest = min(compared, key=lambda method: compared[method])
    reached = (
        compared.get("greedy", float("-inf")) >= AHEAD_OF_GREEDY - _ROUNDING
        and compared[nearest] >= -_ROUNDING
        and spent <= ROWS_PER_TASK
    )
    figures = "; ".join(
        f"{compared[method]:+.3f} against {method} at {budget_name(rivals[method][0].key.budget)} "
        f"({gaps[method][1]} shared cells)"
        for method in dict.fromkeys(("greedy", nearest))
        if method in compared
    )
    mean = float(np.mean([cell.specific for cell in candidate_cells]))
    return Target(
        "a", model, claim, reached, f"mean {mean:.3f}; {figures}; {spent:.0f} rows a task"
    )


def _best_budgets(cells: Sequence[Cell], *, without: set[str]) -> dict[str, list[Cell]]:
    """Returns each other method's cells at the budget of its highest mean specific drop."""
    groups: dict[str, dict[int | None, list[Cell]]] = {}
    for cell in cells:
        if cell.done and cell.key.method not in without:
            groups.setdefault(cell.key.method, {}).setdefault(cell.key.budget, []).append(cell)
    return {
        method: max(
            budgets.values(),
            key=lambda budget_cells: np.mean([cell.specific for cell in budget_cells]),
        )
        for method, budgets in groups.items()
    }


def _planted(model: str, candidate_cells: Sequence[Cell]) -> Target:
    claim = f"planted recall {RECALL} or more, no false selection in {CLEAN:.0%} of the runs"
    planted = [(cell.recall, cell.false) for cell in candidate_cells if cell.recall is not None]
    if not planted:
        return Target("b", model, claim, None, "no task of this model has a planted set")
    recall = float(np.mean([share for share, _ in planted]))
    clean = float(np.mean([false == 0 for _, false in planted]))
    reached = recall >= RECALL - _ROUNDING and clean >= CLEAN - _ROUNDING
    figures = f"recall {recall:.3f}, {clean:.0%} of {len(planted)} runs without a false selection"
    return Target("b", model, claim, reached, figures)


def _abstains(model: str, cells: Sequence[Cell], candidate_cells: Sequence[Cell]) -> Target:
    claim = (
        f"abstains where no method's heads cost the task {DAMAGE:.0%}, and never where heads are "
        "planted"
    )
    worst: dict[str, float] = {}
    for cell in cells:
        if cell.done:
            worst[cell.key.task] = max(worst.get(cell.key.task, 0.0), cell.drop)
    spared = {task for task, drop in worst.items() if drop < DAMAGE}
    wrong = [cell for cell in candidate_cells if cell.key.task in spared and not cell.abstained]
    planted = [cell for cell in candidate_cells if cell.recall is not None]
    silent = [cell for cell in planted if cell.abstained]
    if not candidate_cells or not (spared or planted):
        least = min(worst.values(), default=float("nan"))
        return Target(
            "c", model, claim, None, f"no such task: every one loses at least {least:.2f} to a set"
        )
    figures = (
        f"{len(spared)} tasks that nothing damages ({', '.join(sorted(spared)) or 'none'}): "
        f"{len(wrong)} selections there; {len(silent)} abstentions in {len(planted)} runs on "
        "planted sets"
    )
    return Target("c", model, claim, not wrong and not silent, figures)


def _calibrated(model: str, lines: Sequence[MethodSummary], candidate: str) -> Target:
    low, high = COVERAGE
    claim = f"90 % intervals hold the exhaustive effect in {low:.0%} to {high:.0%} of the cases"
    candidate_lines = [line for line in lines if line.method == candidate and line.budget is None]
    if not candidate_lines or candidate_lines[0].coverage is None:
        return Target("e", model, claim, None, "no intervals, or no exhaustive effects")
    coverage, count = candidate_lines[0].coverage, candidate_lines[0].intervals
    reached = low - _ROUNDING <= coverage <= high + _ROUNDING
    return Target("e", model, claim, reached, f"{coverage:.1%} of {count:,} intervals")


def _simulated(lines: Sequence[SimulatedSummary], candidate: str) -> Target:
    claim = "five strongest among the first five of the ranking: recall " + ", ".join(
        f"{RECALL} within {rows:,} rows at {components}" for components, rows in SIMULATED.items()
    )
    figures, reached = [], True
    for components, rows in SIMULATED.items():
        within = [
            line
            for line in lines
            if line.cells
            and (line.method, line.components, line.scenario) == (candidate, components, SCENARIO)
            and line.rows <= rows
        ]
        if not within:
            return Target(
                "d", "", claim, None, f"no simulation of {candidate} at {components} components"
            )
        last = max(within, key=lambda line: line.rows)
        reached = reached and last.top >= RECALL - _ROUNDING
        figures.append(
            f"{last.top:.3f} at {components} within {last.rows:,} rows (selected "
            f"{last.recall:.3f}, {last.cells} problems)"
        )
    return Target("d", "", claim, reached, "; ".join(figures))
