"""The summary of cells, against one that is written independently."""

import statistics

import numpy as np
import pytest
from scipy import stats

from broca.studies.methods import bootstrap, summarize
from broca.studies.methods.truth import Exhaustive


class Known:
    """Effects of single components without a folder."""

    def __init__(self, **by_response):
        self.by_response = by_response

    def find(self, cell, response):
        """Whatever the cell."""
        return self.by_response.get(response)


def random_cells(make_cell, count=40):
    """Cells of two methods at two budgets, some refused, some without a selection."""
    rng = np.random.default_rng(5)
    cells = []
    for seed in range(count):
        method, budget = ("greedy", "coar")[seed % 2], (None, 400)[seed // 2 % 2]
        if rng.random() < 0.2:
            cells.append(make_cell(method=method, budget=budget, seed=seed, refused="too few rows"))
            continue
        found = rng.random() < 0.7
        drop, off = rng.random(2) if found else (0.0, 0.0)
        cells.append(
            make_cell(
                method=method, budget=budget, seed=seed, selected=("A",) if found else (),
                drop=float(drop), off_target=float(off), specific=float(drop - off),
                rows=int(rng.integers(100, 900)), seconds=float(rng.random()),
            )
        )  # fmt: skip
    return cells


def test_means_are_those_of_the_cells(make_cell):
    """Abstentions count as 0, refusals not at all; every group by itself."""
    cells = random_cells(make_cell)
    lines = summarize(cells, Known())
    assert [(line.method, line.budget) for line in lines] == [
        ("greedy", 400), ("greedy", None), ("coar", 400), ("coar", None),
    ]  # fmt: skip
    for line in lines:
        own = [c for c in cells if (c.key.method, c.key.budget) == (line.method, line.budget)]
        ran = [c for c in own if c.refused == ""]
        assert (line.cells, line.refused) == (len(ran), len(own) - len(ran))
        for name in ("specific", "drop", "off_target", "rows", "seconds"):
            mean = statistics.fmean(getattr(c, name) for c in ran)
            assert getattr(line, name) == pytest.approx(mean), name
        assert line.specific == pytest.approx(line.drop - line.off_target)
        assert line.abstained == sum(c.selected == () for c in ran)
        assert line.low < line.specific < line.high
        assert line.recall is line.top is line.coverage is None


def test_bootstrap_is_scipys():
    """90 %, percentiles, of the mean; the same values give the same interval."""
    values = np.random.default_rng(1).exponential(size=50)
    low, high = bootstrap(values.tolist())
    assert (low, high) == bootstrap(values.tolist())
    theirs = stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=20000, method="percentile", rng=0
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.02)
    assert np.isnan(bootstrap([])).all()
    assert bootstrap([0.5]) == (0.5, 0.5)


def test_a_method_that_always_refuses_has_a_line(make_cell):
    """It is not hidden: no mean, its words, the count."""
    (line,) = summarize([make_cell(refused="too few"), make_cell(seed=1, refused="x")], Known())
    assert (line.cells, line.refused, line.refusal) == (0, 2, "too few")
    assert np.isnan(line.specific)


def test_intervals_are_compared_in_their_own_response(make_cell):
    """Coverage counts intervals that hold the effect in the response that they are in."""
    names = ("A", "B", "C")
    truth = Known(
        accuracy=Exhaustive("m", "addition", "accuracy", 9, names, (-0.5, 0.0, 0.1)),
        probability=Exhaustive("m", "addition", "probability", 9, names, (-0.9, 0.0, 0.0)),
    )
    cells = [
        make_cell(seed=0, selected=("A", "B"), intervals=((-0.6, -0.4), (0.1, 0.2), None)),
        make_cell(
            seed=1, selected=("C",), response="probability",
            intervals=((-0.6, -0.4), (-0.1, 0.2), (0.0, 0.0)),
        ),
        make_cell(seed=2),
    ]  # fmt: skip
    (line,) = summarize(cells, truth)
    assert line.intervals == 5
    assert line.coverage == pytest.approx(3 / 5)
    assert line.top == pytest.approx(1 / 3)  # only A harms alone: found, missed, missed


def test_planted_sets_are_recovered_where_they_are_learned(make_cell):
    """On `planted` alone, and not where the model cannot do the task."""
    heads = ("L0H0", "L0H6")  # rhyming's, by the model's card
    cells = [
        make_cell("rhyming", model="planted", seed=0, baseline=0.8, selected=heads),
        make_cell("rhyming", model="planted", seed=1, baseline=0.8, selected=(heads[0], "L5H5")),
        make_cell("rhyming", model="planted", seed=2, baseline=0.8),
        make_cell("mc_biology", model="planted", capability="knowledge", baseline=0.44),
    ]
    (line,) = summarize(cells, Known())
    assert line.recall == pytest.approx((1 + 0.5 + 0) / 3)
    assert line.false == pytest.approx(1 / 3)
    assert line.clean == pytest.approx(2 / 3)
