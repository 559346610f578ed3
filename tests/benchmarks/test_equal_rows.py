"""The comparison of methods at equal rows: its stored searches and its tables."""

from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "benchmarks" / "zoo"


@pytest.fixture(scope="module")
def equal_rows(script):
    """The script `benchmarks/zoo/equal_rows.py` as a module."""
    return script("zoo.equal_rows")


def test_cells_become_searches_in_the_tables_order(equal_rows, make_cell, tmp_path):
    """The budget for each measured task becomes rows of the whole search; a file keeps them."""
    cells = [
        make_cell("sums", "coar", 1200, drop=0.25, off_target=0.05, selected=("L0H1",), rows=1188),
        make_cell("sums", "pooled", 600, drop=0.5, selected=("L0H1", "L0H2")),
        make_cell("sums", "cs-stratified", 1200, refused="too few heads"),
    ]
    pooled, stratified, coar = equal_rows.searches_of(cells)
    methods = [search.method for search in (pooled, stratified, coar)]
    assert methods == ["pooled", "cs-stratified", "coar"]
    assert (pooled.rows, coar.rows) == (1200, 1200)
    assert coar.specific == pytest.approx(0.2)
    assert (coar.selected, coar.spent, stratified.refused) == (1, 1188, 1)
    equal_rows.write_cells([pooled, coar], tmp_path / "cells.csv")
    assert equal_rows.read_cells(tmp_path / "cells.csv") == [pooled, coar]


def test_a_table_has_means_over_tasks_and_differences_between_methods(equal_rows):
    """Seeds are averaged before tasks, so that all tasks have the same weight."""

    def search(task, method, drop, *, seed=0, off_target=0.0, refused=0, selected=2):
        return equal_rows.Search(
            model="m", task=task, method=method, rows=1200, seed=seed, drop=drop, spent=1190,
            off_target=off_target, selected=selected, seconds=3.0, refused=refused,
        )  # fmt: skip

    listed = [
        search("sums", "pooled", 0.4, seed=0),
        search("sums", "pooled", 0.6, seed=1),
        search("idle", "pooled", 0.1, off_target=0.1),
        search("sums", "coar", 0.3),
        search("idle", "coar", 0.0, selected=0),
        search("idle", "coar", 0.0, refused=1),
    ]
    lines = [line.strip("| ").split(" | ") for line in equal_rows.table(listed).splitlines()]
    cells = {line[0]: line[1:] for line in lines}
    assert cells["pooled"][:3] == ["0.250", "0.250", ""]
    mean, _, difference, none, _, count, *_ = cells["coar"]
    assert (mean, none, count) == ("0.150", "1", "2 (+1 refused)")
    assert difference == "+0.100 (+0.000 to +0.200)"


def test_the_readme_has_the_table_of_the_kept_searches(equal_rows, monkeypatch, tmp_path):
    """Writing the table of the stored searches leaves the README unchanged."""
    page = tmp_path / "README.md"
    page.write_text((ZOO / "README.md").read_text())
    equal_rows.write(page)
    assert page.read_text() == (ZOO / "README.md").read_text()
