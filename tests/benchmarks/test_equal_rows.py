"""The comparison of methods at equal rows: its stored searches and its tables."""

from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "benchmarks" / "zoo"
BEST_DROPS = {("m", "sums"): 0.5, ("m", "idle"): -0.1}


@pytest.fixture(scope="module")
def equal_rows(script):
    """The script `benchmarks/zoo/equal_rows.py` as a module."""
    return script("zoo.equal_rows")


@pytest.fixture
def search_of(equal_rows):
    """Returns a function that makes a search, by default of 1,200 rows."""

    def make(task, method, drop, *, seed=0, **fields):
        stated = {
            "model": "m", "rows": 1200, "off_target": 0.0, "selected": 2, "spent": 1190,
            "seconds": 3.0, "refused": 0,
        }  # fmt: skip
        return equal_rows.Search(task=task, method=method, drop=drop, seed=seed, **stated | fields)

    return make


def rows_of_table(text):
    """Returns the cells of every table line, by the first cell."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines}


def test_methods_that_measure_the_others_share_rows_out(equal_rows):
    """A method that also measures the other tasks divides its rows among all tasks."""
    assert equal_rows.rows_of_each("pooled", 4800, 6) == 800
    assert equal_rows.rows_of_each("coar", 4800, 6) == 4800


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


def test_a_table_has_means_over_tasks_and_differences_between_methods(equal_rows, search_of):
    """Seeds are averaged before tasks, so that all tasks have the same weight."""
    cells = rows_of_table(
        equal_rows.table(
            [
                search_of("sums", "pooled", 0.4, seed=0),
                search_of("sums", "pooled", 0.6, seed=1),
                search_of("idle", "pooled", 0.1, off_target=0.1),
                search_of("sums", "coar", 0.3),
                search_of("idle", "coar", 0.0, selected=0),
                search_of("idle", "coar", 0.0, refused=1),
            ]
        )
    )
    assert cells["pooled"][:3] == ["0.250", "0.250", ""]
    mean, none, count = cells["coar"][0], cells["coar"][3], cells["coar"][5]
    assert (mean, none, count) == ("0.150", "1", "2 (+1 refused)")
    assert cells["coar"][2] == "+0.100 (+0.000 to +0.200)"
    rounded = [search_of("sums", "coar", 0.4, rows=rows) for rows in (1200, 1204, 4800)]
    text = equal_rows.table(rounded)
    assert (text.count("About"), text.count("About 1,200 rows")) == (2, 1)


def test_the_best_sets_known_are_what_a_share_is_of(equal_rows, search_of):
    """Tasks without a set of positive specific drop are left out of the share."""
    listed = [search_of("sums", "pooled", 0.4), search_of("idle", "pooled", 0.3)]
    assert "80% of the best sets known, 0.400 of 0.500 on 1 tasks" in equal_rows.best_known(
        listed, BEST_DROPS
    )


def test_the_readme_has_the_table_of_the_kept_searches(equal_rows, monkeypatch, tmp_path):
    """Writing the table of the stored searches leaves the README unchanged."""
    page = tmp_path / "README.md"
    page.write_text((ZOO / "README.md").read_text())
    equal_rows.write(page)
    assert page.read_text() == (ZOO / "README.md").read_text()
