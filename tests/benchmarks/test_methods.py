"""The comparison of methods: its cells, its summaries and the tables made from them."""

import sys

import numpy as np
import pytest

import broca


@pytest.fixture(scope="module")
def methods(script):
    """The script `benchmarks/methods.py` as a module."""
    return script("methods")


@pytest.mark.long
def test_the_script_runs_a_tiny_case_and_goes_on(methods, tmp_path, monkeypatch, capsys):
    """A method that refuses its rows has a line too; a second call runs only what is missing."""
    command = (
        f"methods.py --out {tmp_path} --only-methods gradient,coar --only-models planted "
        "--tasks capitals,rhyming --budgets 60 --seeds 1 --exhaustive 0"
    )
    monkeypatch.setattr(sys, "argv", command.split())
    methods.main()
    first = capsys.readouterr()
    assert "cell 4 of 4" in first.err
    assert "coar  60  refused" in first.out
    text = (tmp_path / "cells.jsonl").read_text()
    (tmp_path / "cells.jsonl").write_text(text[:-20])  # as a kill may leave it
    methods.main()
    second = capsys.readouterr()
    assert "cell 1 of 1" in second.err
    assert [line.split("  ")[:5] for line in second.out.splitlines()] == [
        line.split("  ")[:5] for line in first.out.splitlines()
    ]
    assert len(methods.method_cells(tmp_path).read()) == 4


@pytest.mark.long
def test_a_cell_is_what_localize_finds(methods, planted, tmp_path):
    """A cell has the selection, drops and rows of `localize`, and its share of known sets."""
    grid = methods.Grid(
        ["one-shot"], [485], [3], "capitals", "capitals,rhyming", items=5, report_items=40,
        exhaustive=4,
    )  # fmt: skip
    cells = methods.method_cells(tmp_path)
    with broca.Workspace() as workspace:
        assert methods.compare(planted, grid, cells, workspace) == 1
        result = broca.localize(
            planted, "capitals", others=["rhyming"], method="one-shot", rows=485, items=5, seed=3,
            report_items=40, verify=False, journal=workspace,
        )  # fmt: skip
    (cell,) = cells.read().values()
    assert (cell.selected, cell.rows) == (result.selected, result.cost.rows)
    assert cell.drop == result.verification.drop
    assert cell.specific == result.verification.specific_drop
    assert 0 <= cell.recall <= 1
    assert 0 <= cell.top <= 1


@pytest.mark.long
def test_simulations_have_a_known_answer(script, tmp_path):
    """With many rows the selection is close to the best set; cells are kept."""
    simulations = script("simulations")
    grid = simulations.SimulatedGrid(("pooled",), (40,), ("small",), (4800,), (0,))
    cells = simulations.simulated_cells(tmp_path)
    assert simulations.run_simulations(grid, cells) == 1
    assert simulations.run_simulations(grid, cells) == 0
    (line,) = simulations.summarize_simulations(cells.read().values())
    assert line.spent <= 4800
    assert 0.5 * line.best < line.specific <= line.best


def test_means_are_those_of_the_cells(script, make_cell):
    """Means count abstentions as 0 and leave out refusals and unknown values."""
    rng = np.random.default_rng(5)
    drops, off_target = rng.random((2, 20)) * (rng.random(20) < 0.7)
    ran = [
        make_cell(
            seed=seed, selected=("A",) if drop else (), drop=drop, off_target=off, rows=100 + seed,
            recall=[None, 0.0, 1.0][seed % 3], intervals=10, held=8,
        )
        for seed, (drop, off) in enumerate(zip(drops, off_target, strict=True))
    ]  # fmt: skip
    refused = [make_cell(seed=seed, refused="too few rows") for seed in (20, 21)]
    elsewhere = make_cell(method="coar", drop=0.25)
    line, other = script("summaries").summarize([*ran, *refused, elsewhere])
    assert (line.cells, line.refused, line.abstained) == (20, 2, sum(drops == 0))
    assert (line.drop, line.off_target) == pytest.approx((drops.mean(), off_target.mean()))
    assert line.specific == pytest.approx((drops - off_target).mean())
    assert line.low < line.specific < line.high
    assert (line.rows, line.coverage) == pytest.approx((109.5, 0.8))
    assert line.recall == pytest.approx(6 / 13)
    assert (other.method, other.drop) == ("coar", 0.25)


def test_the_tables_of_results_are_those_of_the_csv_files(methods, tmp_path, monkeypatch):
    """`--write` without a folder makes the same tables from the stored CSV files."""
    page, text = tmp_path / "RESULTS.md", (methods.HERE / "RESULTS.md").read_text(encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(methods, "draw", lambda lines, path: None)
    methods.write(page)
    assert page.read_text(encoding="utf-8") == text
    before = methods.read_cells()
    methods.write_cells(methods.ordered(methods.renewed(before, [])), tmp_path / "cells.csv")
    written = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(written) == sorted(methods.CELLS.read_text(encoding="utf-8").splitlines())
