"""The summary and the table of a stress test."""

from dataclasses import replace

from results.samples import make_stress

from broca.results.base import Interval


def test_the_verdict_comes_first():
    """The summary has the verdict, then the set, then the number of pairs."""
    stress = make_stress()
    verdict, heads, pairs = stress.summary()
    assert verdict == "transfers: it does"
    assert heads == "toy, family letters: L0H1"
    assert pairs == "48 pairs, seed 0"
    assert stress.selected == stress.heads


def test_every_interval_has_a_line():
    """Necessity, reversals, transfers, copied sources and the positive control have records."""
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
    """A record has the value and both ends of its interval."""
    stress = replace(make_stress(), positive_control=Interval(3.0, 2.0, 4.5))
    last = stress.records()[-1]
    assert (last["value"], last["low"], last["high"]) == (3.0, 2.0, 4.5)
