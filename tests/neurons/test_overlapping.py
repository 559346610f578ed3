"""Overlaps of neurons between halves of tasks."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.neurons.overlapping import halves, overlapped
from broca.options import RuleOptions


def test_halves_are_compared_and_relations_named(ask):
    """Two tasks of two halves give six pairs; the summary is the mean over a relation's pairs."""
    run = ask(letters(8), letters(8, name="others", start=12), rule=RuleOptions(count=6, steps=3))
    overlaps = overlapped(run, ["letters", "others"])
    assert len(overlaps.pairs) == 6
    assert [pair.relation for pair in overlaps.pairs].count("same data") == 2
    assert [pair.relation for pair in overlaps.pairs].count("other capability") == 4
    across = [p.overlap.of_larger for p in overlaps.pairs if p.relation == "other capability"]
    assert overlaps.summary["other capability"]["of_larger"] == pytest.approx(np.mean(across))
    assert all(len(set(pair.sizes)) == 1 for pair in overlaps.pairs)


def test_halves_are_disjoint_and_seeded():
    """Every item is in exactly one half, and the seed determines the halves."""
    first, second = halves(np.arange(10, 19), seed=1)
    assert sorted([*first, *second]) == list(range(10, 19))
    assert np.array_equal(first, halves(np.arange(10, 19), seed=1)[0])
