"""Tables show rounded values, and their CSV files have every digit."""

import csv
import io

from broca.results.base import Interval
from broca.results.pages.tables import SHOWN, Column, Table, fixed, interval, p_value, points

TABLE = Table(
    "t",
    "a caption",
    (Column("name", words=True), Column("drop", points), Column("p", p_value), Column("none")),
    (("a, b", Interval(0.5, 0.4, 0.6), 0.01234, None), ("c", None, None, None)),
)


def test_columns_without_anything_known_are_left_out():
    """Empty columns are left out."""
    assert [column.name for column, _ in TABLE.headings] == ["name", "drop", "p"]


def test_cells_show_what_is_known():
    """Drops are in points with their interval; unknown values are blank."""
    assert [[cell.text for cell in line] for line in TABLE.lines] == [
        ["a, b", "50.0 [40.0, 60.0]", "0.012"],
        ["c", "", ""],
    ]


def test_csv_has_every_digit_and_the_ends_of_intervals():
    """Values have full precision, intervals have columns of their own, and commas are quoted."""
    rows = list(csv.reader(io.StringIO(TABLE.as_csv())))
    assert rows == [
        ["name", "drop", "drop low", "drop high", "p"],
        ["a, b", "0.5", "0.4", "0.6", "0.01234"],
        ["c", "", "", "", ""],
    ]


def test_long_tables_show_their_first_rows():
    """The other rows are embedded in the page in a short form."""
    rows = tuple((f"L0H{n}", -n / 1000) for n in range(SHOWN + 2))
    table = Table("t", "c", (Column("head", components=True), Column("effect", fixed(3))), rows)
    assert (len(table.lines), table.hidden_rows) == (SHOWN, 2)
    assert table.hidden == "L0H40,-.040\nL0H41,-.041"


def test_numbers_have_a_minus_sign():
    """Negative numbers have a minus sign, and positive ones a plus sign if `sign` is set."""
    assert fixed(2, sign=True)(-0.5) == "−0.50"
    assert fixed(2, sign=True)(0.5) == "+0.50"
    assert interval(Interval(-1, -2, 0.5)) == "−1.00 [−2.00, +0.50]"
    assert points(0.123) == "12.3"
