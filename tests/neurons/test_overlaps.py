"""Overlaps of located sets: of paraphrases, of pairs of items, and of halves of data sets."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.items import ItemPair, task_of
from broca.neurons.overlaps import RELATIONS, decoupled, overlapped, reworded, shared
from broca.options import RuleOptions

RULE = RuleOptions(count=6, steps=3)


def test_paraphrases_are_compared_as_they_say(ask):
    """The overlap of paraphrases is the mean over contents, recomputed from the items' sets."""
    run = ask(letters(8), rule=RULE)  # four contents in two wordings
    fidelity = reworded(run, "letters")
    sets = run.item_sets("letters")
    same = [shared(sets[2 * c], sets[2 * c + 1], neurons=128).iou for c in range(4)]
    assert tuple(agreement.pairs for agreement in fidelity.agreements) == RELATIONS
    assert fidelity.agreements[0].iou.value == pytest.approx(np.mean(same))
    assert (fidelity.contents, fidelity.set_size, fidelity.empty) == (4, 6, 0)
    plain = tuple({"prompt": prompt, "answer": " x"} for prompt in "ab")
    with pytest.raises(BadInput, match="too few paraphrases"):
        reworded(ask(replace(letters(), examples=plain)), "letters")


def test_halves_are_compared_and_relations_named(ask):
    """Two tasks of two halves give six pairs; the summary is the mean over a relation's pairs."""
    run = ask(letters(8), letters(8, name="others", start=12), rule=RULE)
    overlaps = overlapped(run)
    assert Counter(pair.relation for pair in overlaps.pairs) == {
        "other capability": 4, "same data": 2,
    }  # fmt: skip
    across = [p.overlap.of_larger for p in overlaps.pairs if p.relation == "other capability"]
    assert overlaps.summary["other capability"]["of_larger"] == pytest.approx(np.mean(across))
    assert all(pair.sizes == (6, 6) for pair in overlaps.pairs)


def test_decoupling_of_identical_items_is_complete(ask):
    """Identical items overlap fully, and relations are kept apart."""
    letter, number = ("say a", " A"), ("count to nine", " z")
    pairs = [ItemPair("same", letter, letter), ItemPair("different", letter, number)]
    same, different = decoupled(ask(task_of(pairs), rule=RULE), pairs)
    assert (same.iou.value, same.of_first.value) == (1, 1)
    assert different.iou.value < 1
    assert different.random_of_larger == pytest.approx(6 / 128)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3, 4], [3, 4, 9], (2, 2 / 4, 2 / 3, 2 / 4, 2 / 5)),
        ([], [1], (0, None, 0, 0, 0)),
        ([], [], (0, None, None, None, None)),
    ],
)
def test_overlap_is_what_the_definitions_say(first, second, expected):
    """Common neurons are a share of the first set, the second, the larger and the union."""
    found = shared(np.array(first, dtype=int), np.array(second, dtype=int), neurons=200)
    shares = (found.of_first, found.of_second, found.of_larger, found.iou)
    assert (found.common, *shares) == expected


def test_expectation_is_that_of_random_sets():
    """Expected overlaps agree with simulated random sets, IoU to first order."""
    rng = np.random.default_rng(0)
    draws = [
        shared(*(rng.choice(200, size, replace=False) for size in (30, 50)), neurons=200)
        for _ in range(2000)
    ]
    means = [np.mean([draw.of_larger for draw in draws]), np.mean([draw.iou for draw in draws])]
    expected = [draws[0].expected_of_larger, draws[0].expected_iou]
    np.testing.assert_allclose(means, expected, rtol=0.05)
