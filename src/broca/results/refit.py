"""The ranking of another recovery on a run's rows: `refit.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import Result, joined_names
from broca.results.localization import AdditivityInfo, RankedComponent, ranking_records


@dataclass(frozen=True, kw_only=True, repr=False)
class Refit(Result, file="refit.json", page="refit.html", verb="broca refit"):
    """The ranking of another recovery on a run's rows.

    Attributes:
        task: The task that the run localized.
        method: The method that chose the rows.
        recovery: The recovery of this ranking.
        response: Response in which effects are measured.
        rows: Number of rows of the task that were used.
        masks: Number of their distinct masks, without the intact mask.
        ranking: All components, the most harmful ablation first.
        selected: Names of the selected components, at most k.
        reason: Why nothing was selected; empty otherwise.
        additivity: How well effects add up; None with few masks.
        notes: Notes for the reader.
    """

    kind: Literal["refit"] = "refit"
    task: str
    method: str
    recovery: str
    response: str
    rows: int
    masks: int
    ranking: tuple[RankedComponent, ...]
    selected: tuple[str, ...]
    reason: str
    additivity: AdditivityInfo | None
    notes: tuple[str, ...] = ()

    def summary(self) -> tuple[str, ...]:
        """Returns the new selection and the size of the data."""
        return (
            f"{self.task}: {joined_names(self.selected) or f'nothing selected: {self.reason}'}",
            f"{self.recovery} on {self.masks:,} masks of {self.method}, {self.rows:,} rows",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component, in the order of the ranking."""
        return ranking_records(self.ranking, self.selected)
