"""Cells of a comparison: each is a search by a method, in a JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from broca.errors import BadInput
from broca.results import encode, read_text, restored, write_beside

FOLDER = "cells"


@dataclass(frozen=True)
class CellKey:
    """The settings of a cell: two cells with the same key are the same search.

    Attributes:
        fingerprint: Fingerprint of the model's weights.
        task: The task that was localized.
        others: The tasks that the selection should not affect.
        items: Maximum number of items to search on.
        report_items: Maximum number of report items of the task, and of all others together.
        exhaustive: Maximum number of items on which every component was ablated alone; 0 for none.
        method: Name of the method.
        budget: Rows for each measured task; None for the method's own budget.
        seed: Seed of the items and of the search.
        k: Maximum number of components to select.
        task_options: Task options that differ from the tasks' files.
    """

    fingerprint: str
    task: str
    others: tuple[str, ...]
    items: int
    report_items: int
    exhaustive: int
    method: str
    budget: int | None
    seed: int
    k: int
    task_options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its file; different keys have different names."""
        readable = f"{self.method}-{self.task}-{self.budget or 'default'}-seed{self.seed}"
        return file_name(readable, self)


class Key(Protocol):
    """The settings of a cell of any kind."""

    @property
    def name(self) -> str:
        """Name of its file."""


@dataclass(frozen=True)
class Cell:
    """A finished search of a method, or its refusal.

    Attributes:
        key: The settings.
        model: Name of the model.
        capability: Capability that the task measures.
        refused: Why the method did not run; empty if it ran.
        selected: Names of the selected components.
        reason: Why nothing was selected; empty otherwise.
        baseline: Score of the task on the intact model, on the report items.
        drop: Drop of the task on the report items; 0 if nothing was selected.
        off_target: Mean drop of the others; 0 if nothing was selected.
        rows: Number of rows of the search, all tasks together.
        seconds: Time from the built tasks to the scored selection.
        recall: Share of the planted heads that were selected; None if none are known.
        false: Number of selected heads that were not planted; None if no planted heads are known.
        top: Share selected of the k components with the largest single effects; None if these were
            not measured or none is harmful.
        intervals: Number of 90 % intervals that can be compared with effects of single ablations.
        held: Number of these intervals that contain the effect.
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
    rows: int = 0
    seconds: float = 0.0
    recall: float | None = None
    false: int | None = None
    top: float | None = None
    intervals: int = 0
    held: int = 0
    broca: str = ""

    @property
    def specific(self) -> float:
        """Specific drop of the selection."""
        return self.drop - self.off_target

    @property
    def done(self) -> bool:
        """Whether the method ran."""
        return not self.refused

    @property
    def abstained(self) -> bool:
        """Whether it ran and selected nothing."""
        return self.done and not self.selected


class Keyed(Protocol):
    """A cell of any kind."""

    @property
    def key(self) -> Any:
        """The settings, a `Key`."""


AnyCell = TypeVar("AnyCell", bound=Keyed)


class CellFolder(Generic[AnyCell]):
    """Finished cells of a kind, each in its own JSON file.

    Args:
        folder: Their folder, which is created when the first cell is added.
        kind: The class of the cells.
    """

    def __init__(self, folder: Path, kind: type[AnyCell]) -> None:
        self._folder = folder
        self._kind = kind

    def __contains__(self, key: Key) -> bool:
        return self._path(key).exists()

    def add(self, cell: AnyCell) -> None:
        """Writes a cell, completely or not at all.

        Raises:
            BadInput: The folder cannot be written.
        """
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"'{self._folder}' cannot be made ({error.strerror}): choose another `out`"
            ) from error
        write_beside(self._path(cell.key), encode(cell))

    def remove(self, keys: Collection[Key]) -> None:
        """Removes the cells of some keys, so that they are run again."""
        for key in keys:
            self._path(key).unlink(missing_ok=True)

    def read(self) -> list[AnyCell]:
        """Reads all cells, by the names of their files.

        Raises:
            BadInput: A file holds something else.
        """
        return [self._read(path) for path in sorted(self._folder.glob("*.json"))]

    def _read(self, path: Path) -> AnyCell:
        text = read_text(path)
        try:
            cell: AnyCell = restored(json.loads(text), self._kind)
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"'{path}' is not a cell of this broca ({error}): delete it, and it is run again, "
                "or choose another `out`"
            ) from error
        return cell

    def _path(self, key: Key) -> Path:
        return self._folder / f"{key.name}.json"


def file_name(readable: str, key: Any) -> str:
    """Returns a readable name with a digest of the key."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in readable)
    digest = hashlib.blake2b(encode(key, indent=0).encode(), digest_size=6).hexdigest()
    return f"{safe[:100]}-{digest}"


def method_cells(folder: Path) -> CellFolder[Cell]:
    """Returns the cells of methods in an out folder."""
    return CellFolder(folder / FOLDER, Cell)


def parse_budgets(text: str) -> tuple[int | None, ...]:
    """Reads budgets such as `100,400,default`; `default` is the method's own budget, None here.

    Raises:
        BadInput: A budget is neither a number of rows nor `default`.
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
                f"`budgets`: '{word}' is neither a number of rows nor 'default'; such as "
                "100,400,default"
            )
    if not budgets:
        raise BadInput("`budgets` names no budget: give numbers of rows, or default")
    return tuple(budgets)


def budget_name(budget: int | None) -> str:
    """Returns the name of a budget in tables."""
    return "default" if budget is None else f"{budget:,}"
