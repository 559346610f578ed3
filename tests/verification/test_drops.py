"""Drops of tasks on their report items."""

import pytest

from broca.results.base import Interval
from broca.verification import MeasuredDrop
from broca.verification.drops import below_chance


@pytest.mark.parametrize(
    ("before", "after", "chance", "expected"),
    [
        (0.9, 0.5, 0.5, 0.0),  # the model guesses
        (0.9, 0.3, 0.5, 0.2),  # it prefers wrong answers
        (0.4, 0.3, 0.5, 0.1),  # it did before, too
        (0.4, 0.6, 0.5, 0.0),  # a gain
        (0.9, 0.0, 0.0, 0.0),  # nobody guesses a generated answer
        (3.0, 5.0, None, 0.0),  # a perplexity has no chance
    ],
)
def test_the_part_below_chance_is_an_inverted_preference(before, after, chance, expected):
    """A drop below chance begins where guessing ends, and a gain has none."""
    assert below_chance(before, after, chance) == pytest.approx(expected)
    drop = MeasuredDrop(
        task="a", role="task", metric="acc", items=20, before=before, after=after,
        drop=Interval(before - after, -1.0, 1.0), test="mcnemar", p=0.5, p_holm=0.5, chance=chance,
    )  # fmt: skip
    assert drop.below_chance == pytest.approx(expected)
