"""Tables: rows of values that a page shows, sorts, filters and saves, and a terminal prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from broca.results.base import Interval

SHOWN = 40
"""Number of rows that a page shows at once; its script has the others."""

_LEADING_ZERO = re.compile(r"(?m)((?:^|\t)[+-]?)0\.")


def shown(value: Any) -> str:
    """Shows a value by its type: yes or no, a whole number, four digits, words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Interval):
        return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    form = ",d" if isinstance(value, int) else ".4g" if isinstance(value, float) else ""
    return f"{value:{form}}"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Heading of the column.
        value: Attribute of a record, or a function of it; the heading by default.
        show: Formats a known value.
        note: Explanation of the heading, if needed.
        components: Whether it names components, which links its rows with the picture of the model.
    """

    name: str
    value: str | Callable[[Any], Any] = ""
    show: Callable[[Any], str] = shown
    note: str = ""
    components: bool = False

    def of(self, record: Any) -> Any:
        """Returns the value of a record."""
        if callable(self.value):
            return self.value(record)
        return attrgetter(self.value or self.name.replace(" ", "_"))(record)


def component(value: str | Callable[[Any], Any] = "head", name: str = "component") -> Column:
    """Makes the column of most tables whose rows are components."""
    return Column(name, value, components=True)


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: Name in anchors and files.
        caption: Description of the rows.
        columns: The columns.
        rows: Values by row and column: text, numbers, intervals, or None if unknown.
        strong: Numbers of emphasized rows.
        summary: Number of last rows that sum up the others and stay below them.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    strong: frozenset[int] = frozenset()
    summary: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        records: Iterable[Any],
        *columns: Column,
        strong: Callable[[Any], bool] = lambda _: False,
    ) -> Table:
        """Makes a table with a row for each record, of which `strong` emphasizes some."""
        records = list(records)
        rows = tuple(tuple(column.of(record) for column in columns) for record in records)
        emphasized = frozenset(n for n, record in enumerate(records) if strong(record))
        return cls(name, caption, columns, rows, emphasized)

    @staticmethod
    def by_name(*tables: Table) -> dict[str, Table]:
        """Returns tables by their names, in their order."""
        return {table.name: table for table in tables}

    def pick(self, columns: str = "", most: int | None = None) -> Table:
        """Returns the table with some columns, whose headings `|` joins, and its first rows."""
        headings = [column.name for column in self.columns]
        numbers = [headings.index(name) for name in columns.split("|") if name] or range(
            len(headings)
        )
        rows = tuple(tuple(row[number] for number in numbers) for row in self.rows[:most])
        return replace(self, columns=tuple(self.columns[n] for n in numbers), rows=rows)

    @cached_property
    def _known(self) -> tuple[int, ...]:
        """Numbers of the columns with known values; the first is always shown."""
        return tuple(
            number
            for number in range(len(self.columns))
            if number == 0 or any(row[number] is not None for row in self.rows)
        )

    @cached_property
    def headings(self) -> list[tuple[Column, bool]]:
        """Returns the columns with known values, and whether words align them to the left."""
        return [
            (column, column.components or any(isinstance(row[n], str | bool) for row in self.rows))
            for n, column in ((n, self.columns[n]) for n in self._known)
        ]

    @property
    def by(self) -> int | None:
        """Number of the shown column that names components; None if there is none."""
        return next((n for n, (column, _) in enumerate(self.headings) if column.components), None)

    @cached_property
    def lines(self) -> list[list[str]]:
        """Returns the texts of the rows in these columns; unknown values are empty."""
        return [
            ["" if row[n] is None else self.columns[n].show(row[n]) for n in self._known]
            for row in self.rows
        ]

    @property
    def hidden(self) -> str:
        """Returns the rows that a page shows only with its script: lines of cells, with tabs.

        Numbers are short, such as `-.5`: a large model has ten thousand rows.
        """
        lines = ("\t".join(" ".join(cell.split()) for cell in line) for line in self.lines[SHOWN:])
        return _LEADING_ZERO.sub(r"\1.", "\n".join(lines).replace("−", "-"))


def fixed(
    digits: int, *, sign: bool = False, scale: float = 1.0
) -> Callable[[float | Interval], str]:
    """Shows a number, and its interval if it has one, with a fixed number of decimals."""

    def number(value: float) -> str:
        return f"{scale * value:{'+' if sign else ''}.{digits}f}".replace("-", "−")

    def show(value: float | Interval) -> str:
        if not isinstance(value, Interval):
            return number(value)
        return f"{number(value.value)} [{number(value.low)}, {number(value.high)}]"

    return show


points = fixed(1, scale=100)
"""Shows a share in points, with its interval if it has one."""

interval = fixed(2, sign=True)
"""Shows a number in its own unit, with its interval if it has one."""


def percent(value: float | Interval) -> str:
    """Shows a share, and its interval if it has one, as whole percents."""
    if isinstance(value, Interval):
        return f"{100 * value.value:.0f} % [{100 * value.low:.0f}, {100 * value.high:.0f}]"
    return f"{100 * value:.0f} %"


def p_value(value: float) -> str:
    """Shows a p-value with two digits, or three if two would hide its side of .05."""
    return f"{value:.{3 if 0.045 < value < 0.055 else 2}g}"
