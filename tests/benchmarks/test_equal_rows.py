"""The comparison of methods at equal rows: its stored searches and its tables."""

from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "benchmarks" / "zoo"


@pytest.fixture(scope="module")
def equal_rows(script):
    """The script `benchmarks/zoo/equal_rows.py` as a module."""
    return script("zoo.equal_rows")


def test_the_readme_has_the_table_of_the_kept_searches(equal_rows, monkeypatch, tmp_path):
    """Writing the table of the stored searches leaves the README unchanged."""
    page = tmp_path / "README.md"
    page.write_text((ZOO / "README.md").read_text())
    equal_rows.write(page)
    assert page.read_text() == (ZOO / "README.md").read_text()
