"""Tables: what is shown, and what their CSV files have."""

import csv
import io

from broca.reports.tables import SHOWN, Column, Table, fixed, interval, p_value, points
from broca.results.base import Interval

TABLE = Table(
    "t",
    "a caption",
    (Column("name", words=True), Column("drop", points), Column("p", p_value), Column("none")),
    (("a, b", Interval(0.5, 0.4, 0.6), 0.01234, None), ("c", None, None, None)),
)


def test_columns_without_anything_known_are_left_out():
    """The first always stays."""
    assert [column.name for column, _ in TABLE.headings] == ["name", "drop", "p"]


def test_cells_show_what_is_known():
    """In points with the interval; nothing where nothing is known."""
    assert [[cell.text for cell in line] for line in TABLE.lines] == [
        ["a, b", "50.0 [40.0, 60.0]", "0.012"],
        ["c", "", ""],
    ]


def test_csv_has_every_digit_and_the_ends_of_intervals():
    """Text with commas is quoted."""
    rows = list(csv.reader(io.StringIO(TABLE.as_csv())))
    assert rows == [
        ["name", "drop", "drop low", "drop high", "p"],
        ["a, b", "0.5", "0.4", "0.6", "0.01234"],
        ["c", "", "", "", ""],
    ]


def test_long_tables_show_their_first_rows():
    """The others are data of the page, as short as they can be."""
    rows = tuple((f"L0H{n}", -n / 1000) for n in range(SHOWN + 2))
    table = Table("t", "c", (Column("head", components=True), Column("effect", fixed(3))), rows)
    assert (len(table.lines), table.hidden_rows) == (SHOWN, 2)
    assert table.hidden == "L0H40,-.040\nL0H41,-.041"


def test_numbers_have_a_minus_sign():
    """And a plus sign where that says something."""
    assert fixed(2, sign=True)(-0.5) == "−0.50"
    assert fixed(2, sign=True)(0.5) == "+0.50"
    assert interval(Interval(-1, -2, 0.5)) == "−1.00 [−2.00, +0.50]"
    assert points(0.123) == "12.3"
