"""The tables of the docs equal those made from the records."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


@pytest.mark.parametrize("file", tables.FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_tables_are_those_of_the_records(file):
    """`python docs/tables.py` would change nothing."""
    assert tables.rewritten(file.read_text()) == file.read_text()
