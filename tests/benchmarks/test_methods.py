"""The comparison of methods: its cells, its summaries and the tables made from them."""

import statistics
import sys

import numpy as np
import pytest
from scipy import stats

import broca


@pytest.fixture(scope="module")
def methods(script):
    """The script `benchmarks/methods.py` as a module."""
    return script("methods")


@pytest.fixture(scope="module")
def summaries(script):
    """The module `benchmarks/summaries.py`."""
    return script("summaries")


def test_the_script_runs_a_tiny_case_and_goes_on(methods, tmp_path, monkeypatch, capsys):
    """A method that refuses its rows has a line too; a second call runs only what is missing."""
    command = (
        f"methods.py --out {tmp_path} --only-methods gradient,thompson --only-models planted "
        "--tasks capitals,rhyming --budgets 60 --seeds 1 --exhaustive 0"
    )
    monkeypatch.setattr(sys, "argv", command.split())
    methods.main()
    first = capsys.readouterr()
    assert "cell 4 of 4" in first.err
    assert "thompson  60  refused" in first.out
    text = (tmp_path / "cells.jsonl").read_text()
    (tmp_path / "cells.jsonl").write_text(text[:-20])  # as a kill may leave it
    methods.main()
    second = capsys.readouterr()
    assert "cell 1 of 1" in second.err
    assert [line.split("  ")[:5] for line in second.out.splitlines()] == [
        line.split("  ")[:5] for line in first.out.splitlines()
    ]
    assert len(methods.method_cells(tmp_path).read()) == 4


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


@pytest.mark.parametrize("scenario", ["additive", "small"])
def test_simulations_have_a_known_answer(script, scenario, tmp_path):
    """With many rows the selection is the best set or close to it; cells are kept."""
    simulations = script("simulations")
    grid = simulations.SimulatedGrid(("pooled",), (40,), (scenario,), (4800,), (0,))
    cells = simulations.simulated_cells(tmp_path)
    assert simulations.run_simulations(grid, cells) == 1
    assert simulations.run_simulations(grid, cells) == 0
    (line,) = simulations.summarize_simulations(cells.read().values())
    assert line.spent <= 4800
    if scenario == "additive":
        assert line.recall >= 0.8
    else:
        assert 0.5 * line.best < line.specific <= line.best


def random_cells(make_cell, count=40):
    """Returns cells of two methods at two budgets, some refused and some without a selection."""
    rng = np.random.default_rng(5)
    cells = []
    for seed in range(count):
        method, budget = ("greedy", "coar")[seed % 2], (None, 400)[seed // 2 % 2]
        if rng.random() < 0.2:
            cells.append(make_cell(method=method, budget=budget, seed=seed, refused="too few rows"))
            continue
        drop, off = rng.random(2) * (rng.random() < 0.7)
        cells.append(
            make_cell(
                method=method, budget=budget, seed=seed, selected=("A",) if drop else (),
                drop=float(drop), off_target=float(off), rows=int(rng.integers(100, 900)),
                recall=[None, 0.0, 1.0][seed % 3], intervals=10, held=8,
            )
        )  # fmt: skip
    return cells


def test_means_are_those_of_the_cells(summaries, make_cell):
    """Each group's means count abstentions as 0 and leave out refusals and unknown values."""
    cells = random_cells(make_cell)
    lines = summaries.summarize(cells)
    assert len(lines) == 4
    for line in lines:
        group = [c for c in cells if (c.key.method, c.key.budget) == (line.method, line.budget)]
        ran = [c for c in group if c.refused == ""]
        assert (line.cells, line.refused) == (len(ran), len(group) - len(ran))
        for name in ("specific", "drop", "off_target", "rows"):
            mean = statistics.fmean(getattr(c, name) for c in ran)
            assert getattr(line, name) == pytest.approx(mean), name
        assert line.abstained == sum(c.selected == () for c in ran)
        assert line.low < line.specific < line.high
        known = [c.recall for c in ran if c.recall is not None]
        assert line.recall == pytest.approx(statistics.fmean(known))
        assert line.coverage == pytest.approx(0.8)


def test_bootstrap_is_scipys(summaries):
    """The 90 % percentile interval of the mean agrees with SciPy's."""
    values = np.random.default_rng(1).exponential(size=50)
    expected = stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=20000, method="percentile", rng=0
    ).confidence_interval
    found = summaries.bootstrap(values.tolist())
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


def test_methods_are_compared_where_both_ran(summaries, make_cell):
    """The gap between two methods is the mean over the cells that both ran."""
    first = [make_cell(seed=seed, drop=seed / 10) for seed in range(5)]
    second = [make_cell(seed=4, drop=0.1), make_cell(seed=3, refused="too few")]
    assert summaries.shared_gap(first, second) == (pytest.approx(0.3), 1)


def test_figures_of_cells_survive_as_csv(methods, summaries, make_cell, tmp_path):
    """Cells that were written and read have equal summaries; unknown values stay unknown."""
    cells = []
    for seed in range(3):
        cells += [
            make_cell(
                method="pooled", seed=seed, selected=("A",) * (seed + 1), rows=100 + seed,
                drop=(90 + seed) / 120, off_target=-seed / 120, seconds=float(seed), top=0.2 * seed,
                intervals=96, held=80 + seed, recall=1.0 if seed else None, false=seed or None,
            ),
            make_cell(method="greedy", budget=100, seed=seed, refused="refused"),
        ]  # fmt: skip
    methods.write_cells(cells, tmp_path / "cells.csv")
    again = summaries.summarize(methods.read_cells(tmp_path / "cells.csv"))
    for before, after in zip(summaries.summarize(cells), again, strict=True):
        assert vars(after) == pytest.approx(vars(before), nan_ok=True)
    with pytest.raises(AssertionError, match="is no share of 120 items"):
        methods.write_cells([make_cell(drop=0.333)], tmp_path / "cells.csv")


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
