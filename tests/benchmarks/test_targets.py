"""Targets of the study are reached, not reached or not measured."""

from dataclasses import replace

import pytest


@pytest.fixture(scope="module")
def targets(script):
    """The function that judges cells against the targets."""
    return script("targets").targets


@pytest.fixture
def judge(targets, script):
    """Returns a function that judges cells and gives the targets by letter."""
    summarize = script("summaries").summarize

    def judge(cells, simulated=()):
        return {
            target.letter: target
            for target in targets(cells, summarize(cells), simulated, candidate="focus")
        }

    return judge


def rivals(make_cell, *, focus=0.8, greedy=0.5, coar=0.7, rows=1600):
    """Returns cells of three methods at four seeds; coar is best at its smaller budget."""
    drops = [
        ("focus", None, 1.0, focus, {"rows": rows}), ("greedy", None, 0.9, greedy, {}),
        ("coar", None, 0.9, 0.1, {}), ("coar", 400, 0.9, coar, {}),
    ]  # fmt: skip
    return [
        make_cell(
            method=method, budget=budget, seed=seed, selected=("A",), drop=drop,
            off_target=drop - specific, **fields,
        )
        for seed in range(4)
        for method, budget, drop, specific, fields in drops
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "reached"),
    [({}, True), ({"greedy": 0.61}, False), ({"coar": 0.81}, False), ({"rows": 1602}, False)],
)
def test_ahead_of_greedy_and_of_every_method_at_its_best(judge, make_cell, changed, reached):
    """Target a needs 0.2 more than greedy, no better method, and at most 800 rows a task."""
    target = judge(rivals(make_cell, **changed))["a"]
    assert target.reached is reached
    assert ("NOT reached" in str(target)) is (not reached)
    assert "against greedy at default (4 shared cells)" in target.figures


def test_what_was_not_run_is_not_measured(judge, make_cell):
    """A target without the cells that it needs is neither reached nor missed."""
    without_greedy = [cell for cell in rivals(make_cell) if cell.key.method != "greedy"]
    judged = judge(without_greedy)
    assert [judged[letter].reached for letter in "abcde"] == [None] * 5
    assert "not measured" in str(judged["a"])


def test_abstains_where_nothing_is_damaged(judge, make_cell):
    """A selection on a task that no set damages is wrong; so is an abstention on `planted`."""
    spared = make_cell("easy", method="greedy", selected=("A",), drop=0.05)
    abstained = make_cell("easy", method="focus")
    assert judge([spared, abstained])["c"].reached is True
    assert judge([spared, replace(abstained, selected=("B",), drop=0.02)])["c"].reached is False
    planted = {"model": "planted", "method": "focus", "false": 0}
    found = make_cell("rhyming", selected=("L0H0", "L0H6"), drop=0.8, recall=1.0, **planted)
    silent = make_cell("rhyming", seed=1, recall=0.0, **planted)
    for cells, reached in (([found], True), ([found, silent], False)):
        assert [judge(cells)[letter].reached for letter in "bc"] == [reached] * 2
    assert judge([replace(found, false=1)])["b"].reached is False


def test_simulations_within_their_rows(judge, make_cell, script):
    """Simulations with more rows than allowed do not count; both sizes are needed."""

    def line(components, rows, recall):
        return script("simulations").SimulatedSummary(
            components, "heavy", "focus", rows, 1, 0, "", recall, recall, 0, rows, 0
        )

    good = [line(1024, 1000, 1.0), line(8192, 3000, 1.0)]
    assert judge(rivals(make_cell), good)["d"].reached is True
    assert judge(rivals(make_cell), good[:1])["d"].reached is None
    late = [line(1024, 1000, 0.8), line(1024, 3000, 1.0), good[1]]
    assert judge(rivals(make_cell), late)["d"].reached is False


@pytest.mark.parametrize(("coverage", "reached"), [(0.84, False), (0.9, True), (0.96, False)])
def test_calibration_within_five_points(targets, make_cell, script, coverage, reached):
    """A coverage more than five points above or below 90 % misses the target."""
    cells = rivals(make_cell)
    lines = [
        replace(line, coverage=coverage, intervals=100)
        for line in script("summaries").summarize(cells)
    ]
    judged = targets(cells, lines, (), candidate="focus")
    (target,) = (target for target in judged if target.letter == "e")
    assert target.reached is reached
