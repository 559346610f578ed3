"""Targets of the study are reached, not reached or not measured."""

import pytest


@pytest.fixture
def judge(script):
    """Returns a function that judges cells and says by letter whether targets are reached."""
    summarize, targets = script("summaries").summarize, script("targets").targets

    def judge(cells, simulated=()):
        judged = targets(cells, summarize(cells), simulated, candidate="pooled")
        return {target.letter: target.reached for target in judged}

    return judge


@pytest.fixture
def rivals(make_cell):
    """Returns a function that makes cells of three methods; coar is best at its smaller budget."""

    def make(*, greedy=0.5, coar=0.7, **fields):
        drops = [
            ("pooled", None, 1.0, 0.8, {"rows": 1600, **fields}), ("greedy", None, 0.9, greedy, {}),
            ("coar", None, 0.9, 0.1, {}), ("coar", 400, 0.9, coar, {}),
        ]  # fmt: skip
        return [
            make_cell(
                method=method, budget=budget, seed=seed, selected=("A",), drop=drop,
                off_target=drop - specific, **more,
            )
            for seed in range(4)
            for method, budget, drop, specific, more in drops
        ]  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("changed", "letter", "reached"),
    [
        # 0.2 more than greedy, no better method, and at most 800 rows a task
        ({}, "a", True),
        ({"greedy": 0.61}, "a", False),
        ({"coar": 0.81}, "a", False),
        ({"rows": 1602}, "a", False),
        # intervals that hold in 85 to 95 % of cases
        ({}, "e", None),
        ({"intervals": 100, "held": 84}, "e", False),
        ({"intervals": 100, "held": 90}, "e", True),
        ({"intervals": 100, "held": 96}, "e", False),
    ],
)
def test_rivals_and_calibration(judge, rivals, changed, letter, reached):
    """The margin to other methods, the rows and the coverage decide."""
    assert judge(rivals(**changed))[letter] is reached


def test_simulations_within_their_rows(judge, rivals, script):
    """Simulations with more rows than allowed do not count; both sizes are needed."""

    def line(components, rows, recall):
        return script("simulations").SimulatedSummary(
            components, "heavy", "pooled", rows, 1, 0, "", recall, recall, 0, rows, 0
        )

    good = [line(1024, 1000, 1.0), line(8192, 3000, 1.0)]
    late = [line(1024, 1000, 0.8), line(1024, 3000, 1.0), good[1]]
    assert [judge(rivals(), lines)["d"] for lines in (good, good[:1], late)] == [True, None, False]
