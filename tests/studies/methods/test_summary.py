"""Summaries of cells, against means computed independently."""

import statistics

import numpy as np
import pytest
from scipy import stats

from broca.studies.methods import bootstrap, shared_gap, summarize


def random_cells(make_cell, count=40):
    """Returns cells of two methods at two budgets, some refused and some without a selection."""
    rng = np.random.default_rng(5)
    cells = []
    for seed in range(count):
        method, budget = ("greedy", "coar")[seed % 2], (None, 400)[seed // 2 % 2]
        if rng.random() < 0.2:
            cells.append(make_cell(method=method, budget=budget, seed=seed, refused="too few rows"))
            continue
        selects = rng.random() < 0.7
        drop, off = rng.random(2) if selects else (0.0, 0.0)
        cells.append(
            make_cell(
                method=method, budget=budget, seed=seed, selected=("A",) if selects else (),
                drop=float(drop), off_target=float(off),
                rows=int(rng.integers(100, 900)), seconds=float(rng.random()),
            )
        )  # fmt: skip
    return cells


def test_means_are_those_of_the_cells(make_cell):
    """Each group's means count abstentions as 0 and leave out refusals."""
    cells = random_cells(make_cell)
    lines = summarize(cells)
    assert [(line.method, line.budget) for line in lines] == [
        ("greedy", 400), ("greedy", None), ("coar", 400), ("coar", None),
    ]  # fmt: skip
    for line in lines:
        group = [c for c in cells if (c.key.method, c.key.budget) == (line.method, line.budget)]
        ran = [c for c in group if c.refused == ""]
        assert (line.cells, line.refused) == (len(ran), len(group) - len(ran))
        for name in ("specific", "drop", "off_target", "rows", "seconds"):
            mean = statistics.fmean(getattr(c, name) for c in ran)
            assert getattr(line, name) == pytest.approx(mean), name
        assert line.specific == pytest.approx(line.drop - line.off_target)
        assert line.abstained == sum(c.selected == () for c in ran)
        assert line.low < line.specific < line.high
        assert line.recall is line.top is line.coverage is None


def test_bootstrap_is_scipys():
    """The 90 % percentile interval of the mean agrees with SciPy's and is reproducible."""
    values = np.random.default_rng(1).exponential(size=50)
    low, high = bootstrap(values.tolist())
    assert (low, high) == bootstrap(values.tolist())
    scipy_interval = stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=20000, method="percentile", rng=0
    ).confidence_interval
    assert (low, high) == pytest.approx((scipy_interval.low, scipy_interval.high), abs=0.02)
    assert np.isnan(bootstrap([])).all()
    assert bootstrap([0.5]) == (0.5, 0.5)


def test_a_method_that_always_refuses_has_a_line(make_cell):
    """A method that always refuses has a summary with its message, its count and no mean."""
    (line,) = summarize([make_cell(refused="too few"), make_cell(seed=1, refused="x")])
    assert (line.cells, line.refused, line.refusal) == (0, 2, "too few")
    assert np.isnan(line.specific)


def test_figures_of_the_truth_are_means_over_the_cells_that_have_them(make_cell):
    """Means of recall, false selections and coverage use only the cells that have them."""
    cells = [
        make_cell(seed=0, recall=1.0, false=0, top=0.5, intervals=90, held=81),
        make_cell(seed=1, recall=0.5, false=1, intervals=10, held=4),
        make_cell(seed=2, recall=0.0, false=0, top=1.0),
        make_cell(seed=3),
        make_cell(seed=4, refused="too few"),
    ]
    (line,) = summarize(cells)
    assert line.recall == pytest.approx(0.5)
    assert line.false == pytest.approx(1 / 3)
    assert line.clean == pytest.approx(2 / 3)
    assert line.top == pytest.approx(0.75)
    assert (line.coverage, line.intervals) == (pytest.approx(0.85), 100)


def test_methods_are_compared_where_both_ran(make_cell):
    """The gap between two methods is the mean over the cells that both ran."""
    first = [make_cell(seed=seed, drop=seed / 10) for seed in range(5)]
    second = [make_cell(seed=4, drop=0.1), make_cell(seed=3, refused="too few")]
    assert shared_gap(first, second) == (pytest.approx(0.3), 1)
    assert shared_gap(first, [])[1] == 0


def test_the_candidate_is_compared_with_every_other_method(make_cell):
    """The candidate's default budget is compared with every method that ran on the same cells."""
    cells = [
        *(make_cell(method="focus", seed=seed, drop=0.8) for seed in range(3)),
        make_cell(method="focus", budget=100, drop=0.1),
        make_cell(method="greedy", seed=1, drop=0.5, off_target=0.1),
        make_cell(method="greedy", budget=400, seed=9, drop=0.5),
        make_cell(method="greedy", model="other", drop=0.5),
    ]
    lines = {
        (summary.model, summary.method, summary.budget): summary
        for summary in summarize(cells, candidate="focus")
    }
    assert lines["m", "greedy", None].behind == pytest.approx(0.4)
    assert lines["m", "greedy", None].shared == 1
    for name in (("m", "greedy", 400), ("other", "greedy", None), ("m", "focus", 100)):
        assert lines[name].behind is None
    assert all(line.behind is None for line in summarize(cells))
