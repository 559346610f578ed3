"""Tables show the values that are known, each in its own unit."""

import pytest

from broca.results.base import Interval
from broca.results.pages.tables import SHOWN, Column, Table, fixed, interval, p_value, points


def test_a_table_has_a_row_for_each_record():
    """A column is an attribute or a function of a record, by default the one of its heading."""
    records = [Interval(1.0, 0.5, 2.0), Interval(3.0, 1.0, 4.0)]
    table = Table.of(
        "t", "c", records, Column("value"), Column("lower end", "low"),
        Column("width", lambda record: record.high - record.low), strong=lambda r: r.value > 2,
    )  # fmt: skip
    assert table.rows == ((1.0, 0.5, 1.5), (3.0, 1.0, 3.0))
    assert table.strong == {1}
    picked = table.pick("width|value", most=1)
    assert [column.name for column in picked.columns] == ["width", "value"]
    assert picked.rows == ((1.5, 1.0),)
    with pytest.raises(ValueError, match="none"):
        table.pick("none")


def test_cells_show_what_is_known():
    """Drops are in points with their interval, unknown values blank, empty columns left out.

    Negative numbers have a minus sign, and positive ones of effects a plus sign.
    """
    columns = Column("name"), Column("drop", show=points), Column("p", show=p_value), Column("none")
    rows = (("a, b", Interval(0.5, 0.4, 0.6), 0.01234, None), ("c", None, 0.0504, None))
    table = Table("t", "a caption", columns, rows)
    headings = [(column.name, words) for column, words in table.headings]
    assert headings == [("name", True), ("drop", False), ("p", False)]
    assert table.lines == [["a, b", "50.0 [40.0, 60.0]", "0.012"], ["c", "", "0.0504"]]
    assert interval(Interval(-1, -2, 0.5)) == "−1.00 [−2.00, +0.50]"


def test_long_tables_hide_rows_in_short_numbers():
    """The rows after the first are lines of cells with tabs between them."""
    rows = tuple((f"L0H{n}", -n / 1000) for n in range(SHOWN + 2))
    table = Table("t", "c", (Column("head"), Column("effect", show=fixed(3))), rows)
    assert table.hidden == "L0H40\t-.040\nL0H41\t-.041"
