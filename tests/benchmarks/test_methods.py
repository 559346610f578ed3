"""The study of the methods: its cells as CSV files, and the tables made from them."""

import math
from dataclasses import replace

import pytest
from broca.studies.methods import simulate_methods, summarize


@pytest.fixture(scope="module")
def methods(script):
    """The script `benchmarks/methods.py` as a module."""
    return script("methods")


def test_figures_of_cells_survive_as_csv(methods, make_cell, tmp_path):
    """Cells that were written and read have equal summaries; unknown values stay unknown."""
    cells = []
    for seed in range(3):
        cells += [
            make_cell(
                method="focus", seed=seed, selected=("A",) * (seed + 1), rows=100 + seed,
                drop=(90 + seed) / 120, off_target=-seed / 120, seconds=float(seed), top=0.2 * seed,
                intervals=96, held=80 + seed, recall=1.0 if seed else None, false=seed or None,
            ),
            make_cell(method="greedy", budget=100, seed=seed, refused="too few"),
            make_cell(method="coar", seed=seed, selected=("A",), drop=0.5),
        ]  # fmt: skip
    methods.write_cells(cells, tmp_path / "cells.csv")
    first, second = summarize(cells), summarize(methods.read_cells(tmp_path / "cells.csv"))
    for before, after in zip(first, second, strict=True):
        for name, value in vars(before).items():
            same = getattr(after, name)
            if name == "refusal":
                continue
            if isinstance(value, float):
                assert same == pytest.approx(value, nan_ok=True), name
            else:
                assert same == value, name


def test_a_figure_that_is_no_share_of_the_items_is_refused(methods, make_cell, tmp_path):
    """A drop that is not a multiple of 1/120 cannot be written without rounding."""
    with pytest.raises(AssertionError, match="is no share of 120 items"):
        methods.write_cells([make_cell(drop=0.333)], tmp_path / "cells.csv")


def test_simulations_survive_as_csv(methods, tmp_path):
    """Summaries that were written and read are equal, to a relative error of 1e-5."""
    summaries = simulate_methods(
        "gradient,greedy", components=(96,), scenarios="heavy", rows=(60,), seeds=(0,), out=tmp_path
    )
    methods.write_simulations(summaries, tmp_path / "simulations.csv")
    again = methods.read_simulations(tmp_path / "simulations.csv")
    for before, after in zip(summaries, again, strict=True):
        for name, value in vars(before).items():
            same = getattr(after, name)
            assert type(same) is type(value) or name in ("recall", "top", "false", "spent")
            assert same == value or math.isclose(same, value, rel_tol=1e-5) or math.isnan(value)


def test_new_cells_take_the_place_of_those_of_their_method_and_budget(methods, make_cell, tmp_path):
    """New cells replace those of the same model, method and budget; all others stay."""
    before = methods.read_cells()
    methods.write_cells(methods.ordered(methods.renewed(before, [])), tmp_path / "cells.csv")
    written = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(written) == sorted(methods.CELLS.read_text(encoding="utf-8").splitlines())
    new = replace(make_cell(method="focus", budget=400, seed=0), model="reference")
    focus = [cell for cell in methods.renewed(before, [new]) if cell.key.method == "focus"]
    assert new in focus
    focus_before = [cell for cell in before if cell.key.method == "focus"]
    at_400 = [cell for cell in focus_before if (cell.model, cell.key.budget) == ("reference", 400)]
    assert len(focus) == len(focus_before) - len(at_400) + 1


def test_new_summaries_of_simulations_take_the_place_of_old_ones(methods):
    """A new summary takes the position of the old one."""
    before = methods.read_simulations()
    assert methods.renewed_simulations(before, []) == before
    new = replace(before[5], recall=0.125)
    after = methods.renewed_simulations(before, [new])
    assert after == [*before[:5], new, *before[6:]]


def test_the_tables_of_results_are_those_of_the_csv_files(methods, tmp_path, monkeypatch):
    """`--write` without a folder makes the same tables from the stored CSV files."""
    page = tmp_path / "RESULTS.md"
    page.write_text((methods.HERE / "RESULTS.md").read_text(encoding="utf-8"), encoding="utf-8")
    drawn = []
    monkeypatch.setattr(methods, "draw", lambda lines, path: drawn.append(path.name))
    methods.write(page)
    assert page.read_text(encoding="utf-8") == (methods.HERE / "RESULTS.md").read_text(
        encoding="utf-8"
    )
    assert drawn == ["methods.png"]
