"""Overlaps of paraphrases compared with overlaps of different items."""

from dataclasses import replace

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.rewording import reworded
from broca.neurons.selection import item_set
from broca.neurons.sets import shared
from broca.options import RuleOptions

RULE = RuleOptions(count=6, steps=3)


def test_paraphrases_are_compared_as_they_say(neurons, ask):
    """The overlap of paraphrases is the mean over contents, recomputed from the items' sets."""
    run = ask(letters(8), rule=RULE)  # four contents in two wordings
    fidelity = reworded(run, "letters")
    scores = run.item_scores(run.places("letters")).scores
    sets = [item_set(item, neurons.layers, RULE) for item in scores]
    same = [shared(sets[2 * c], sets[2 * c + 1], neurons=128).iou for c in range(4)]
    assert fidelity.agreements[0].pairs == "same item, other wording"
    assert fidelity.agreements[0].iou.value == pytest.approx(np.mean(same))
    assert {agreement.pairs for agreement in fidelity.agreements} == {
        "same item, other wording", "other item, same wording", "other item, other wording",
    }  # fmt: skip
    assert (fidelity.contents, fidelity.set_size, fidelity.empty) == (4, 6, 0)


def test_data_without_paraphrases_are_refused(ask):
    """Contents with a single wording each are refused."""
    plain = tuple({"prompt": prompt, "answer": " x"} for prompt in "ab")
    with pytest.raises(BadInput, match="no paraphrases"):
        reworded(ask(replace(letters(), examples=plain)), "letters")
