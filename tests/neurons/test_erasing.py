"""Losses after erasing sets of neurons, compared with random sets."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.erasing import erased
from broca.neurons.selection import EMPTY
from broca.neurons.sets import RandomSets


def test_losses_are_differences_of_the_measurements(ask):
    """Nats lost equal the difference of the two measurements, and every random draw is reported."""
    run, columns = ask(letters(6)), np.array([1, 2, 3, 20, 64, 100])
    (lost,) = erased(run, {"cnl": columns}, ["letters"], RandomSets(3))
    assert (lost.neurons, len(lost.random_drops)) == (6, 3)
    assert lost.drop.value == pytest.approx(lost.before.value - lost.after.value)
    assert lost.excess.value == pytest.approx(lost.drop.value - np.mean(lost.random_drops))
    places = run.places("letters", "report")
    before, after = run.scaled(places, [EMPTY, columns]).log_probability
    assert lost.log_probability_drop.value == pytest.approx((before - after).mean())
    assert lost.log_probability_drop.value != 0
    with pytest.raises(BadInput, match="selected no neuron"):
        erased(run, {"cnl": columns[:0]}, ["letters"], RandomSets())
