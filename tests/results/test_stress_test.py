"""A stress test as a result: its summary and its table of intervals."""

from dataclasses import replace

from reports.test_escaping import make_stress

from broca.results.base import Interval


def test_the_verdict_comes_first():
    """Then the set, and what was measured."""
    stress = make_stress()
    verdict, heads, pairs = stress.summary()
    assert verdict == "transfers: it does"
    assert heads == "toy, family letters: L0H1"
    assert pairs == "48 pairs, seed 0"
    assert stress.selected == stress.heads


def test_every_interval_has_a_line():
    """Necessity, reversals, transfers, what was copied, and the positive control."""
    stress = make_stress()
    measures = [(line["measure"], line["of"]) for line in stress.records()]
    assert measures == [
        ("necessity", "zero"),
        ("reversal", "the last token"),
        ("transfer", "same template"),
        ("transfer", "noise"),
        ("copying", "same template"),
        ("positive control", ""),
    ]


def test_lines_hold_the_numbers_of_their_interval():
    """Value and both ends."""
    stress = replace(make_stress(), positive_control=Interval(3.0, 2.0, 4.5))
    last = stress.records()[-1]
    assert (last["value"], last["low"], last["high"]) == (3.0, 2.0, 4.5)
