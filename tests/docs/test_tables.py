"""The tables of the docs equal those made from the records."""

import re
from pathlib import Path

import pytest
from docs.scripts import script

ROOT = Path(__file__).parents[2]
tables = script("tables")


@pytest.mark.parametrize("file", tables.FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_tables_are_those_of_the_records(file):
    """`python docs/tables.py` would change nothing."""
    assert tables.rewritten(file.read_text()) == file.read_text()


def test_every_block_is_shown_somewhere():
    """Every generated block is in a document; a marker without a block raises `KeyError`."""
    texts = "".join(file.read_text() for file in tables.FILES)
    assert set(tables.tables()) <= set(re.findall(r"<!-- ([\w-]+) -->", texts))
    with pytest.raises(KeyError, match="methds"):
        tables.rewritten("<!-- methds -->\n<!-- /methds -->")
