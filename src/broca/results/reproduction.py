"""A table or figure of the compressed-sensing paper, repeated by `broca reproduce`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from broca.results.base import Result


@dataclass(frozen=True, repr=False)
class Reproduction(Result, verb="broca reproduce"):
    """A repeated table or figure.

    Attributes:
        name: Name of the table or figure, such as `table2`.
        models: The models, in the order given.
        rows: The rows, each with its model: plain values by column.
        settings: The settings, as plain values.
        notes: Notes for the reader, such as tasks that a model cannot do.
        shows: What the table or figure shows.
    """

    kind: Literal["reproduction"] = field(default="reproduction", kw_only=True)
    name: str
    models: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    shows: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in the order of their first appearance."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row))

    @property
    def file_name(self) -> str:
        """Name of its file, that of the table or figure."""
        return f"{self.name}.json"

    def summary(self) -> tuple[str, ...]:
        """Returns the content of the table and its size."""
        return (
            f"{self.name}: {self.shows}",
            f"{len(self.rows)} rows of {', '.join(self.models)}",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns its rows; a row without a value in a column has None there."""
        return [{column: row.get(column) for column in self.columns} for row in self.rows]
