"""The rule of the verdict: its labels, headlines, counts and statements on chance."""

import numpy as np
import pytest

from broca.results.base import Interval
from broca.results.verification import Controls, ControlSet, Member, Standing
from broca.verification.drops import MeasuredDrop
from broca.verification.verdict import _needed_for, judge

HEADS = ["L0H1", "L2H3"]


def interval(value, half=0.02):
    """Returns an interval with the given half width."""
    return Interval(value, value - half, value + half)


def lost(task, role, before, after, *, chance=0.0, p=1e-6):
    """Returns a task's drop between two scores."""
    drop = before - after
    p = p if drop > 0.05 else 0.9
    return MeasuredDrop(
        task, role, "acc", 200, before, after, interval(drop), "mcnemar", p, p, chance
    )


def controls(drop_rank=1, specific_rank=1, sets=39):
    """Returns random sets of one kind, among which the tested set has the given ranks."""
    control_set = ControlSet(("L1H1", "L1H2"), 0.0, 0.0)
    places = [Standing(0.5, rank, rank / (sets + 1), None) for rank in (drop_rank, specific_rank)]
    return [Controls("layers", 100, 100, *places, (control_set,) * sets)]


def members(*needed):
    """Returns two members that are needed or not."""
    return [
        Member(head, interval(0.2), interval(0.2), 0.001, contributes)
        for head, contributes in zip(HEADS, needed, strict=True)
    ]


def verdict_of(drops, sets=None, needed=(True, True)):
    """Returns the verdict on two heads."""
    task_drop = drops[0].drop.value
    others = [drop.drop.value for drop in drops[1:]]
    mean = sum(others) / len(others)
    return judge(
        drops, interval(mean), interval(task_drop - mean), controls() if sets is None else sets,
        members(*needed), [], heads=HEADS,
    )  # fmt: skip


DROPS = [lost("adding", "task", 0.94, 0.1), *(lost(n, "other", 0.9, 0.89) for n in ("a", "b"))]


def test_only_a_specific_set_is_needed():
    """Only the headline of a specific set says "needs"; others state the finding."""
    specific = verdict_of(DROPS)
    assert (specific.label, specific.headline) == (
        "specific", "The model needs L0H1, L2H3 for adding",
    )  # fmt: skip
    assert "0 of 39 random sets matched by layers are as specific" in specific.text
    partly = verdict_of(DROPS, needed=(True, False))
    assert partly.label == "partly specific"
    assert partly.headline == (
        "Ablating L0H1, L2H3 costs adding 84 points, but only 1 of 2 members contribute "
        "significantly"
    )


@pytest.mark.parametrize(
    ("rank", "words"), [(3, "do 2 of 20 random sets"), (2, "does 1 of 20 random sets")]
)
def test_random_sets_that_reach_the_set_are_counted(rank, words):
    """The headline counts the random sets that reach the tested set's drop."""
    verdict = verdict_of(DROPS, controls(rank, rank, sets=20))
    assert verdict.label == "not localized at head level"
    assert verdict.headline == f"Ablating L0H1, L2H3 costs adding 84 points, but so {words}"
    assert f"{rank - 1} of 20 random sets matched by layers" in verdict.text


def test_the_worst_other_task_stands_beside_the_mean():
    """The text names the other task with the largest loss, which gains elsewhere do not hide."""
    drops = [DROPS[0], lost("a", "other", 0.9, 0.76), lost("b", "other", 0.7, 0.84)]
    assert "a most (14.0 points" in verdict_of(drops).text


def test_a_drop_below_chance_is_an_inverted_preference():
    """Of a drop from 0.8 to 0.4, with chance at 0.5, ten points lie below chance."""
    drops = [lost("pairs", "task", 0.8, 0.4, chance=0.5), *DROPS[1:]]
    text = verdict_of(drops).text
    assert "of 30.0 above chance, 10.0 of them below chance: an inverted preference" in text
    assert drops[0].below_chance == pytest.approx(0.1)
    assert lost("pairs", "task", 0.8, 0.6, chance=0.5).below_chance == 0
    assert lost("pairs", "task", 0.45, 0.4, chance=0.5).below_chance == pytest.approx(0.05)


def test_no_drop_has_a_headline_that_says_so():
    """A set without a drop has a headline without random sets."""
    verdict = verdict_of([lost("adding", "task", 0.9, 0.9), *DROPS[1:]])
    assert verdict.headline == "No drop of adding was seen without L0H1, L2H3"


def measured(task="sums", role="task", value=0.5, p=0.001, *, half=0.05):
    """Returns a task's drop on 100 items."""
    after = 0.9 - value
    ends = interval(value, half)
    return MeasuredDrop(task, role, "acc", 100, 0.9, after, ends, "mcnemar", p, p, 0.0)


CASE = {
    "drops": (
        measured(),
        measured("words", "other", 0.01, 0.5),
        measured("facts", "other", 0.0, 1.0),
    ),
    "off_target": interval(0.005, 0.01),
    "specific": interval(0.495, 0.05),
    "controls": controls(),
    "members": members(True, True),
    "failures": (),
}
"""A set that is specific in every respect."""


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "specific"),
        ({"drops": (measured(p=0.2), *CASE["drops"][1:])}, "inconclusive"),
        (
            {"drops": (measured(value=0.01, p=0.4, half=0.02), *CASE["drops"][1:])},
            "not localized at head level",
        ),
        (
            {"drops": (measured(value=-0.2), *CASE["drops"][1:])},
            "not localized at head level",
        ),
        ({"off_target": None, "specific": None}, "inconclusive"),
        (
            {
                "drops": (
                    measured(),
                    measured("words", "other", 0.3),
                    measured("facts", "other", 0.3),
                ),
                "off_target": interval(0.3, 0.05),
            },
            "universal",
        ),
        ({"controls": controls(7, 7)}, "not localized at head level"),
        ({"controls": controls(sets=4)}, "inconclusive"),
        ({"specific": interval(0.04, 0.05)}, "inconclusive"),
        ({"controls": ()}, "partly specific"),
        ({"off_target": interval(0.1, 0.1)}, "partly specific"),
        (
            {"drops": (measured(), measured("words", "other", 0.4, 0.5), CASE["drops"][2])},
            "partly specific",
        ),
        (
            {"members": members(False, False)},
            "partly specific",
        ),
    ],
)
def test_the_first_rule_that_fits_decides(changes, label):
    """Each change of a specific case gives the label of the first rule that matches."""
    verdict = judge(**{**CASE, **changes}, heads=HEADS)
    assert verdict.label == label, verdict.text


def test_one_kind_of_random_sets_that_is_passed_is_not_enough():
    """A set must beat every kind of random sets in specific drop to be specific."""
    verdict = judge(**{**CASE, "controls": [*controls(), *controls(1, 7)]}, heads=HEADS)
    assert verdict.label == "partly specific"


def test_items_that_would_do_exclude_zero_in_four_of_five_cases():
    """With the stated number of items, 80 % of simulated intervals lie above zero."""
    value, spread, items = 0.1, 1.0, 100
    needed = _needed_for(interval(value, 1.96 * spread / np.sqrt(items)), items)
    draws = np.random.default_rng(0).normal(value, spread / np.sqrt(needed), 20_000)
    excluded = np.mean(draws - 1.96 * spread / np.sqrt(needed) > 0)
    assert excluded == pytest.approx(0.8, abs=0.02)
    assert _needed_for(interval(0.0), 100) is None
