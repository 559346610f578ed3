"""Rows of a journal are exported as a table and read back equal."""

import csv

import numpy as np
import pytest
from journals import CONDITION, NAMES, filled
from pyarrow import parquet

from broca.errors import BadInput
from broca.journal import Journal
from broca.journal.row_table import COLUMNS, write_rows


@pytest.fixture
def journal():
    """A journal of 12 rows, one of them with its output, and what was written to it."""
    with Journal.in_memory() as journal:
        yield journal, filled(journal)


def rows_of(file):
    """Returns the rows of an exported table as dictionaries."""
    if file.suffix == ".parquet":
        return parquet.read_table(file).to_pylist()
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_row_is_in_the_table(journal, tmp_path, ending):
    """Each row has its condition, item, response and output, and the names of what was ablated."""
    opened, (*_, responses, _) = journal
    file = tmp_path / f"rows.{ending}"
    assert write_rows(opened, file) == 12
    rows = rows_of(file)
    assert tuple(rows[0]) == COLUMNS
    drawn = np.random.default_rng(0).random((12, 9)) < 0.5
    by_item = {int(row["item"]): row for row in rows}
    for number, (mask, response) in enumerate(zip(drawn, responses, strict=True)):
        row = by_item[number]
        assert float(row["value"]) == response
        assert row["ablated"] == "+".join(np.array(NAMES)[mask])
        assert (row["weights"], row["response"]) == (CONDITION.weights, CONDITION.response)
        assert bytes.fromhex(row["item_digest"]) == f"0 {number}".encode()
    assert [number for number, row in by_item.items() if row["output"]] == [0]
    assert [file.name for file in tmp_path.iterdir()] == [f"rows.{ending}"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_journal_gives_a_table_without_rows(tmp_path, ending):
    """The table of an empty journal has its columns and no rows."""
    file = tmp_path / f"rows.{ending}"
    with Journal.in_memory() as journal:
        assert write_rows(journal, file) == 0
    assert rows_of(file) == []
    if ending == "parquet":
        assert parquet.read_table(file).column_names == list(COLUMNS)


def test_other_endings_and_places_are_refused(journal, tmp_path):
    """Unknown endings and missing folders are refused, and no file is left behind."""
    opened, _ = journal
    with pytest.raises(BadInput, match=r"must end in \.csv or \.parquet"):
        write_rows(opened, tmp_path / "rows.txt")
    with pytest.raises(BadInput, match="choose another place"):
        write_rows(opened, tmp_path / "nowhere" / "rows.csv")
    assert list(tmp_path.iterdir()) == []
