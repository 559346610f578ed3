"""The rule of the verdict: its labels, headlines, counts and statements on chance."""

from dataclasses import replace

import numpy as np
import pytest

from broca.results import verification as results
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.verification.verdict import judge

HEADS = ["L0H1", "L2H3"]


def interval(value, half=0.02):
    """Returns an interval with the given half width."""
    return Interval(value, value - half, value + half)


def lost(task, role, before, after, *, chance=0.0, p=None, half=0.02):
    """Returns a task's drop between two scores on 200 items; drops above 0.05 are significant."""
    drop = before - after
    p = (1e-6 if drop > 0.05 else 0.9) if p is None else p
    return results.TaskDrop(
        task, role, "acc", 200, before, after, drop, (drop - half, drop + half), "mcnemar", p, p,
        chance,
    )  # fmt: skip


def controls(rank=1, sets=39):
    """Returns random sets of one kind, among which the tested set has the given rank."""
    control_set = results.ControlSet(("L1H1", "L1H2"), 0.0, 0.0)
    place = results.Standing(0.5, rank, rank / (sets + 1), None, interval(1 - (rank - 1) / sets))
    return [results.Controls("layers", 100, 100, place, (control_set,) * sets)]


def members(*needed):
    """Returns two members that are needed or not."""
    return [
        results.Member(head, interval(0.2), interval(0.2), 0.001, contributes)
        for head, contributes in zip(HEADS, needed, strict=True)
    ]


def broken(task, share):
    """Returns outputs of a task, some of which are empty and lose what they had."""
    return results.TaskFailures(task, 100, {"empty": 0.0}, {"empty": share}, share, "", share)


DROPS = [lost("adding", "task", 0.94, 0.1), *(lost(n, "other", 0.9, 0.89) for n in ("a", "b"))]


def verdict_of(drops=DROPS, *, off_target=None, specific=None, **changes):
    """Returns the verdict on two heads that are specific except for some changes."""
    others = [drop.drop for drop in drops if drop.role == "other"]
    fields = {"controls": controls(), "members": members(True, True), **changes}
    if others:
        mean = off_target or interval(np.mean(others))
        difference = specific or interval(drops[0].drop - mean.value)
        fields |= {"off_target_ci": (mean.low, mean.high), "off_target_drop": mean.value}
        fields |= {"specific_ci": (difference.low, difference.high)}
        fields |= {"specific_drop": difference.value}
    verification = results.Verification(
        model=ModelInfo("toy", "abc"), task="adding", heads=HEADS, seed=0, verdict=None,
        ablation=AblationInfo("zero", 0.0), drops=tuple(drops),
        **{"off_target_drop": None, "specific_drop": drops[0].drop, **fields},
    )  # fmt: skip
    return judge(verification)


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "specific"),
        ({"drops": [replace(DROPS[0], p=0.2, p_holm=0.2, items=100), *DROPS[1:]]}, "inconclusive"),
        (
            {"drops": [lost("adding", "task", 0.9, 0.89), *DROPS[1:]]},
            "not localized at head level",
        ),
        ({"drops": [lost("adding", "task", 0.7, 0.9), *DROPS[1:]]}, "not localized at head level"),
        ({"drops": [replace(DROPS[0], drop=0.07, ci=(-0.02, 0.16), p_holm=0.2), *DROPS[1:]]},
         "inconclusive"),
        ({"drops": DROPS[:1]}, "inconclusive"),
        ({"drops": [DROPS[0], *(lost(n, "other", 0.9, 0.4) for n in "ab")]}, "universal"),
        ({"controls": controls(7)}, "not localized at head level"),
        ({"controls": controls(sets=18)}, "inconclusive"),
        ({"controls": [*controls(sets=19), *controls(2)]}, "specific"),  # p 0.05
        ({"specific": interval(0.04, 0.05)}, "inconclusive"),
        ({"controls": ()}, "inconclusive"),
        ({"controls": [*controls(), *controls(7)]}, "not localized at head level"),
        ({"controls": [*controls(), *controls(3)]}, "partly specific"),
        ({"off_target": interval(0.15, 0.1)}, "partly specific"),
        ({"drops": [DROPS[0], lost("a", "other", 0.9, 0.4, p=0.5), DROPS[2]],
          "off_target": interval(0.0)}, "partly specific"),
        ({"off_target": interval(0.45)}, "partly specific"),  # neither task loses significantly
        ({"members": members(True, False)}, "partly specific"),
        ({"failures": [broken("a", 0.6), broken("b", 0.0)]}, "breaks the model"),
        ({"failures": [broken("a", 0.4), broken("b", 0.0)]}, "specific"),
        ({"drops": DROPS[:1], "failures": [broken("adding", 0.4)]}, "inconclusive"),
    ],
)  # fmt: skip
def test_the_first_rule_that_fits_decides(changes, label):
    """Each change of a specific case gives the label of the first rule that matches."""
    verdict = verdict_of(**changes)
    assert verdict.label == label, verdict.text
    assert verdict.headline.startswith("The model needs") == (label == "specific")


@pytest.mark.parametrize(
    ("before", "after", "chance", "below"),
    [
        (0.9, 0.5, 0.5, 0.0),  # the model guesses
        (0.9, 0.3, 0.5, 0.2),  # it prefers wrong answers
        (0.4, 0.3, 0.5, 0.1),  # it did before, too
        (0.4, 0.6, 0.5, 0.0),  # a gain
        (0.9, 0.0, 0.0, 0.0),  # nobody guesses a generated answer
    ],
)
def test_the_part_below_chance_is_no_lost_skill(before, after, chance, below):
    """A drop below chance begins where guessing ends, and a gain has none; the text says so."""
    drop = lost("pairs", "task", before, after, chance=chance)
    assert drop.below_chance == pytest.approx(below)
    text = verdict_of([drop, *DROPS[1:]]).text
    room = f"{100 * (before - chance):.1f} above chance, {100 * below:.1f} of them below chance"
    assert (f" of {room}: noise or" in text) == (below > 0)


def test_items_that_would_do_exclude_zero_in_four_of_five_cases():
    """With the stated number of items, 80 % of simulated intervals lie above zero."""
    value, spread = 0.1, 1.0
    needed = verdict_of(specific=interval(value, 1.96 * spread / np.sqrt(200))).items_needed
    draws = np.random.default_rng(0).normal(value, spread / np.sqrt(needed), 20_000)
    excluded = np.mean(draws - 1.96 * spread / np.sqrt(needed) > 0)
    assert excluded == pytest.approx(0.8, abs=0.02)
    assert verdict_of(specific=interval(0.0)).items_needed is None
    assert verdict_of().text.endswith(
        "and 0 of 39 random sets matched by layers are as specific (ahead of 100 % [98, 102]); "
        "2 of 2 members contribute significantly."
    )
    one, none = (verdict_of(members=members(first, False)).text for first in (True, False))
    assert f"only 1 of 2 members contributes significantly, {HEADS[1]} does not." in one
    assert "but no member contributes significantly." in none
