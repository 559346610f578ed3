"""Targets: reached, not reached, and not measured are three things."""

from dataclasses import replace

import pytest

from broca.studies.methods import SimulatedCell, SimulatedKey, summarize, targets
from broca.studies.methods.targets import shared_gap


class Nothing:
    """No exhaustive effects."""

    def find(self, cell, response):
        """None."""
        return None


def found(cells, simulated=(), **options):
    """Targets by letter."""
    return {
        one.letter: one for one in targets(cells, summarize(cells, Nothing()), simulated, **options)
    }


def rivals(make_cell, *, focus=0.8, greedy=0.5, coar=0.7, rows=1600):
    """Three methods on four tasks; coar is best at its smaller budget."""
    cells = []
    for seed in range(4):
        cells += [
            make_cell(
                method="focus", seed=seed, selected=("A",), specific=focus, drop=1.0, rows=rows
            ),
            make_cell(method="greedy", seed=seed, selected=("A",), specific=greedy, drop=0.9),
            make_cell(method="coar", seed=seed, selected=("A",), specific=0.1, drop=0.9),
            make_cell(
                method="coar", budget=400, seed=seed, selected=("A",), specific=coar, drop=0.9
            ),
        ]
    return cells


@pytest.mark.parametrize(
    ("changed", "reached"),
    [({}, True), ({"greedy": 0.61}, False), ({"coar": 0.81}, False), ({"rows": 1602}, False)],
)
def test_ahead_of_greedy_and_of_every_method_at_its_best(make_cell, changed, reached):
    """0.2 above greedy, not below anyone, within 800 rows for each of the two tasks."""
    target = found(rivals(make_cell, **changed))["a"]
    assert target.reached is reached
    assert ("NOT reached" in str(target)) is (not reached)
    assert "against greedy at default (4 shared cells)" in target.figures


def test_methods_are_compared_where_both_ran(make_cell):
    """Fewer seeds of a slow method bias nothing."""
    ours = [make_cell(seed=seed, specific=seed / 10) for seed in range(5)]
    theirs = [make_cell(seed=4, specific=0.1), make_cell(seed=3, refused="too few")]
    assert shared_gap(ours, theirs) == (pytest.approx(0.3), 1)
    assert shared_gap(ours, [])[1] == 0


def test_what_was_not_run_is_not_measured(make_cell):
    """Neither reached nor missed."""
    only = [cell for cell in rivals(make_cell) if cell.key.method != "greedy"]
    judged = found(only)
    assert [judged[letter].reached for letter in "abcde"] == [None] * 5
    assert "not measured" in str(judged["a"])


def test_abstains_where_nothing_is_damaged(make_cell):
    """A selection on a task that no set costs 10 points is wrong, and so is silence on planted."""
    spared = [
        make_cell("easy", method="greedy", selected=("A",), drop=0.05),
        make_cell("easy", method="focus"),
    ]
    assert found(spared)["c"].reached is True
    chosen = [spared[0], replace(spared[1], selected=("B",), drop=0.02)]
    assert found(chosen)["c"].reached is False
    planted = {"model": "planted", "method": "focus", "baseline": 0.9}
    found_it = [make_cell("rhyming", seed=0, selected=("L0H0", "L0H6"), drop=0.8, **planted)]
    silent = [*found_it, make_cell("rhyming", seed=1, **planted)]
    assert found(found_it)["c"].reached is True
    assert found(found_it)["b"].reached is True
    assert found(silent)["c"].reached is False
    assert found(silent)["b"].reached is False


def test_simulations_within_their_rows(make_cell):
    """More rows than allowed do not count; both sizes are needed."""

    def cell(components, rows, recall):
        return SimulatedCell(SimulatedKey(components, "heavy", "focus", rows, 0, 5), top=recall)

    good = [cell(1024, 1000, 1.0), cell(8192, 3000, 1.0)]
    assert found(rivals(make_cell), good)["d"].reached is True
    assert found(rivals(make_cell), good[:1])["d"].reached is None
    late = [cell(1024, 1000, 0.8), cell(1024, 3000, 1.0), good[1]]
    assert found(rivals(make_cell), late)["d"].reached is False


@pytest.mark.parametrize(("coverage", "reached"), [(0.84, False), (0.9, True), (0.96, False)])
def test_calibration_within_five_points(make_cell, coverage, reached):
    """Intervals that hold too often are as wrong as those that hold too seldom."""
    cells = rivals(make_cell)
    lines = [
        replace(line, coverage=coverage, intervals=100) for line in summarize(cells, Nothing())
    ]
    (target,) = (one for one in targets(cells, lines, ()) if one.letter == "e")
    assert target.reached is reached
