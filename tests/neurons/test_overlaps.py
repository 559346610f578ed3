"""Overlaps of located sets: of paraphrases, of pairs of items, and of halves of data sets."""

import json
from dataclasses import replace

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.overlaps import RELATIONS, decoupled, overlapped, reworded
from broca.neurons.paraphrases import ItemPair, read_pairs, task_of
from broca.neurons.selection import item_set, shared
from broca.options import RuleOptions

RULE = RuleOptions(count=6, steps=3)


def test_paraphrases_are_compared_as_they_say(neurons, ask):
    """The overlap of paraphrases is the mean over contents, recomputed from the items' sets."""
    run = ask(letters(8), rule=RULE)  # four contents in two wordings
    fidelity = reworded(run, "letters")
    scores = run.item_scores(run.places("letters")).scores
    sets = [item_set(item, neurons.layers, RULE) for item in scores]
    same = [shared(sets[2 * c], sets[2 * c + 1], neurons=128).iou for c in range(4)]
    assert tuple(agreement.pairs for agreement in fidelity.agreements) == RELATIONS
    assert fidelity.agreements[0].iou.value == pytest.approx(np.mean(same))
    assert (fidelity.contents, fidelity.set_size, fidelity.empty) == (4, 6, 0)
    plain = tuple({"prompt": prompt, "answer": " x"} for prompt in "ab")
    with pytest.raises(BadInput, match="no paraphrases"):
        reworded(ask(replace(letters(), examples=plain)), "letters")


def test_halves_are_compared_and_relations_named(ask):
    """Two tasks of two halves give six pairs; the summary is the mean over a relation's pairs."""
    run = ask(letters(8), letters(8, name="others", start=12), rule=RULE)
    overlaps = overlapped(run, ["letters", "others"])
    relations = [pair.relation for pair in overlaps.pairs]
    assert sorted(relations) == 4 * ["other capability"] + 2 * ["same data"]
    across = [p.overlap.of_larger for p in overlaps.pairs if p.relation == "other capability"]
    assert overlaps.summary["other capability"]["of_larger"] == pytest.approx(np.mean(across))
    assert all(pair.sizes == (6, 6) for pair in overlaps.pairs)


def test_decoupling_of_identical_items_is_complete(ask, tmp_path):
    """Identical items overlap fully, relations are kept apart, and files give the same pairs."""
    letter, number = (
        {"prompt": prompt, "answer": answer}
        for prompt, answer in (("say a", " A"), ("count to nine", " z"))
    )
    pairs = [ItemPair("same", letter, letter), ItemPair("different", letter, number)]
    same, different = decoupled(ask(task_of(pairs), rule=RULE), pairs)
    assert (same.iou.value, same.of_first.value) == (1, 1)
    assert different.iou.value < 1
    assert different.random_of_larger == pytest.approx(6 / 128)
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(json.dumps(vars(pair)) for pair in pairs))
    assert read_pairs(file) == pairs
    for content, message in (('{"relation": "same"}', "line 1"), ("", "is empty")):
        file.write_text(content)
        with pytest.raises(BadInput, match=message):
            read_pairs(file)
