"""Every item's neurons are scaled on that item."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.scaling import factors_of, move
from broca.neurons.selection import item_set
from broca.neurons.sets import RandomSets
from broca.options import RuleOptions

RULE = RuleOptions(count=6, steps=3)


def test_each_item_is_moved_with_its_own_neurons(neurons, ask):
    """The mean change by located neurons equals erasing each item's set by hand."""
    run = ask(letters(4), letters(3, name="unrelated", start=9), rule=RULE)
    moved = move(run, "letters", RandomSets(2), unrelated=run.places("unrelated"))
    assert [factor.factor for factor in moved.moved] == [0.0, 2.0]
    assert (moved.items, moved.empty, moved.draws) == (4, 0, 2)
    changes = []
    places = run.places("letters")
    for place, item in zip(places, run.item_scores(places).scores, strict=True):
        sets = [np.array([], dtype=int), item_set(item, neurons.layers, RULE)]
        before, after = np.exp(run.scaled(np.array([place]), sets).log_probability[:, 0])
        changes.append(after - before)
    assert moved.moved[0].located.value == pytest.approx(np.mean(changes), rel=1e-3)
    assert moved.moved[0].unrelated is not None
    assert move(run, "letters", RandomSets(1)).moved[0].unrelated is None


def test_no_located_neurons_are_refused(ask):
    """The message says to lower `sigma`."""
    with pytest.raises(BadInput, match="lower `sigma`"):
        move(ask(letters(2), rule=RuleOptions(sigma=1e6, steps=3)), "letters", RandomSets())


def test_factors_are_numbers():
    """Factors are read from a list or a comma-separated string; other text is refused."""
    assert factors_of("0,2") == factors_of([0, 2]) == (0.0, 2.0)
    with pytest.raises(BadInput, match="`factors` 'a'"):
        factors_of("a")
