"""Tables: rows of values that a page shows, sorts, filters and saves as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from broca.results.base import Interval

_LEADING_ZERO = re.compile(r"^([+-]?)0\.(?=\d+$)")

SHOWN = 40
"""Number of rows that a page shows at once; its script has the others."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Heading of the column.
        show: Formats a known value.
        words: Whether it contains words, which are aligned to the left.
        note: Explanation of the heading, if needed.
        components: Whether it names components, which links its rows with the picture of the model.
    """

    name: str
    show: Callable[[Any], str] = str
    words: bool = False
    note: str = ""
    components: bool = False


@dataclass(frozen=True)
class Shown:
    """A cell of the page.

    Attributes:
        text: The visible text; empty if the value is unknown.
        values: Values for CSV files and sorting, if they differ from the text.
    """

    text: str
    values: str


COMPONENT = Column("component", components=True)
"""The column of most tables whose rows are components."""


def words(*names: str) -> tuple[Column, ...]:
    """Makes columns of words."""
    return tuple(Column(name, words=True) for name in names)


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: Name in anchors and files.
        caption: Description of the rows.
        columns: The columns.
        rows: Values by row and column: text, numbers, intervals, or None if unknown.
        strong: Numbers of emphasized rows.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    strong: frozenset[int] = frozenset()

    @property
    def by(self) -> int | None:
        """Number of the column that names components; None if there is none."""
        return next((n for n, column in enumerate(self.columns) if column.components), None)

    @cached_property
    def known_columns(self) -> tuple[int, ...]:
        """Numbers of the columns with known values."""
        return tuple(
            number
            for number in range(len(self.columns))
            if number == 0 or any(row[number] is not None for row in self.rows)
        )

    @property
    def headings(self) -> list[tuple[Column, str]]:
        """Returns the columns with known values, each with its headings in the CSV file."""
        return [
            (self.columns[number], _line(self._csv_names(number))) for number in self.known_columns
        ]  # fmt: skip

    @property
    def lines(self) -> list[list[Shown]]:
        """Returns the rows that the page shows without its script."""
        return [self._shown(row) for row in self.rows[:SHOWN]]

    @property
    def hidden_rows(self) -> int:
        """Number of rows that the page shows only with its script."""
        return max(0, len(self.rows) - SHOWN)

    @property
    def hidden(self) -> str:
        """Returns these rows as CSV with short numbers, such as `-.5`, which the script formats."""
        return "\n".join(
            _line([_LEADING_ZERO.sub(r"\1.", cell.text.replace("−", "-"))
                   for cell in self._shown(row)])
            for row in self.rows[SHOWN:]
        )  # fmt: skip

    def as_csv(self) -> str:
        """Returns the table as CSV: every value with all digits, an interval in three columns."""
        columns = self.known_columns
        names = [name for number in columns for name in self._csv_names(number)]
        rows = [[part for number in columns for part in self._csv_values(number, row[number])]
                for row in self.rows]  # fmt: skip
        return "\n".join(_line(row) for row in [names, *rows]) + "\n"

    def _shown(self, row: Sequence[Any]) -> list[Shown]:
        cells = []
        for number in self.known_columns:
            value = row[number]
            text = "" if value is None else self.columns[number].show(value)
            exact = "" if self.hidden_rows else _line(self._csv_values(number, value))
            cells.append(Shown(text, "" if exact == text else exact))
        return cells

    @cached_property
    def _intervals(self) -> frozenset[int]:
        """Returns the numbers of the columns that contain intervals."""
        return frozenset(
            number
            for number in range(len(self.columns))
            if any(isinstance(row[number], Interval) for row in self.rows)
        )

    def _csv_names(self, number: int) -> list[str]:
        name = self.columns[number].name
        return [name, f"{name} low", f"{name} high"] if number in self._intervals else [name]

    def _csv_values(self, number: int, value: Any) -> list[str]:
        if number not in self._intervals:
            return ["" if value is None else str(value)]
        if value is None:
            return ["", "", ""]
        if isinstance(value, Interval):
            return [str(value.value), str(value.low), str(value.high)]
        return [str(value), "", ""]


def _line(values: Sequence[str]) -> str:
    """Returns a line of CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(values)
    return file.getvalue()


def fixed(digits: int, *, sign: bool = False) -> Callable[[float], str]:
    """Shows a number with a fixed number of decimals and a proper minus sign."""

    def show(value: float) -> str:
        return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")

    return show


def points(value: float | Interval) -> str:
    """Shows a share in points, with its interval if it has one."""
    show = fixed(1)
    if not isinstance(value, Interval):
        return show(100 * value)
    return f"{show(100 * value.value)} [{show(100 * value.low)}, {show(100 * value.high)}]"


def interval(value: float | Interval) -> str:
    """Shows a number in its own unit, with its interval if it has one."""
    show = fixed(2, sign=True)
    if not isinstance(value, Interval):
        return show(value)
    return f"{show(value.value)} [{show(value.low)}, {show(value.high)}]"


def percent(value: float) -> str:
    """Shows a share as whole percents."""
    return f"{100 * value:.0f} %"


def p_value(value: float) -> str:
    """Shows a p-value with two digits."""
    return f"{value:.2g}"


def yes(value: bool) -> str:
    """Shows a truth value."""
    return "yes" if value else "no"


def count(value: int) -> str:
    """Shows a whole number."""
    return f"{value:,}"
