"""The rule of the stress test's verdict."""

import pytest

from broca.results.base import Interval
from broca.results.stress_test import Shift
from broca.stress_tests.verdict import judge


def shift(value, name="x", copying=None, beyond=1.0):
    """Returns a shift of the given size with narrow intervals."""
    narrow = [
        None if v is None else Interval(v, v - 0.1, v + 0.1) for v in (value, copying, beyond)
    ]
    return Shift(name, *narrow)


@pytest.mark.parametrize(
    ("real", "controls", "positive", "label"),
    [
        (shift(3), [shift(0)], 5, "transfers"),
        (shift(3), [shift(0)], 0, "inconclusive"),
        (shift(0, copying=0), [shift(0)], 5, "inert"),
        (shift(0, copying=2), [shift(0)], 5, "answer-bias"),
        (shift(1, copying=4), [shift(0)], 5, "answer-bias"),
        (shift(3), [shift(3, "noise of the same norm", beyond=0)], 5, "broad-state"),
        (shift(3), [shift(3, "random heads", beyond=0)], 5, "soft"),
    ],
)
def test_the_rule(real, controls, positive, label):
    """The first matching rule gives the label; a failed positive control is inconclusive."""
    verdict, text = judge([real, *controls], Interval(positive, positive - 0.1, positive + 0.1))
    assert verdict == label
    assert text.endswith(".")
