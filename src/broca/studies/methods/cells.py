"""Cells of a comparison: one run of one method each, kept as one JSON line in `methods.jsonl`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from broca.errors import BadInput
from broca.results.codec import encode, restored
from broca.runs.lines import LineFile

NAME = "methods.jsonl"

Interval = tuple[float, float]


@dataclass(frozen=True)
class CellKey:
    """What a cell measured: two cells of one key are the same run.

    Attributes:
        fingerprint: Of the model's weights.
        task: The task that was localized.
        others: The tasks that the selection should leave alone.
        items: Most items to search on.
        report_items: Most report items of the task, and of all others together.
        method: Name of the method.
        budget: Rows for each measured task; None for what the method takes by itself.
        seed: Seed of the items and of the search.
        k: Most components to select.
    """

    fingerprint: str
    task: str
    others: tuple[str, ...]
    items: int
    report_items: int
    method: str
    budget: int | None
    seed: int
    k: int


@dataclass(frozen=True)
class Cell:
    """One finished run of a method, or why there is none.

    Attributes:
        key: What was asked.
        model: Name of the model.
        capability: What the task measures.
        refused: Why the method did not run; empty where it did.
        selected: Names of the selected components.
        reason: Why nothing was selected; empty where something was.
        baseline: Score of the task on the intact model, on the report items.
        drop: What the task lost on the report items; 0 where nothing was selected.
        off_target: What the others lost on average; 0 where nothing was selected.
        specific: The difference.
        rows: Rows that the search spent, all tasks together.
        seconds: Time of the search, without the scoring of its selection.
        response: What the effects and intervals are compared in.
        intervals: 90 % interval of every component's effect in the order of the columns, None
            where the method gives none.
        broca: Version of broca.
    """

    key: CellKey
    model: str
    capability: str
    refused: str = ""
    selected: tuple[str, ...] = ()
    reason: str = ""
    baseline: float = 0.0
    drop: float = 0.0
    off_target: float = 0.0
    specific: float = 0.0
    rows: int = 0
    seconds: float = 0.0
    response: str = "accuracy"
    intervals: tuple[Interval | None, ...] | None = None
    broca: str = ""

    @property
    def done(self) -> bool:
        """Whether the method ran."""
        return not self.refused

    @property
    def abstained(self) -> bool:
        """Whether it ran and selected nothing."""
        return self.done and not self.selected

    def to_line(self) -> str:
        """As one line of JSON, keys in a fixed order."""
        return encode(self, indent=None)

    @classmethod
    def from_line(cls, line: str) -> Cell:
        """Reads what `to_line` wrote.

        Raises:
            ValueError: It is no such line.
        """
        return restored(json.loads(line), cls)


CellFile = LineFile[Cell, CellKey]


def cell_file(folder: Path) -> CellFile:
    """The cells of an out folder.

    Raises:
        BadInput: The file holds something else.
    """
    return LineFile(folder / NAME, Cell.from_line)


def parse_budgets(text: str) -> tuple[int | None, ...]:
    """Budgets from `100,400,default`; `default` is what a method takes by itself, None here.

    Raises:
        BadInput: One is neither a number of rows nor `default`.
    """
    budgets: dict[int | None, None] = {}
    for word in (part.strip() for part in text.split(",")):
        if not word:
            continue
        if word == "default":
            budgets[None] = None
        elif word.isdecimal() and int(word) > 0:
            budgets[int(word)] = None
        else:
            raise BadInput(
                f"--budgets: '{word}' is neither a number of rows nor 'default'; such as "
                "100,400,default"
            )
    if not budgets:
        raise BadInput("--budgets names no budget: give numbers of rows, or default")
    return tuple(budgets)


def budget_name(budget: int | None) -> str:
    """How tables call a budget."""
    return "default" if budget is None else f"{budget:,}"
