"""Arms of training start from the same weights and are measured on held-out items."""

import numpy as np
import pytest
import torch
from neurons.conftest import letters

from broca.neurons.enhancing import enhanced
from broca.neurons.sets import RandomSets
from broca.options import TrainingOptions


@pytest.mark.parametrize("without", ["zeroed", "frozen"])
def test_every_arm_is_trained_from_the_same_weights(neurons, ask, without, tmp_path):
    """Arms and shares are complete, training raises the likelihood, and weights are restored."""
    before = {n: v.clone() for n, v in neurons.model.model.state_dict().items()}
    settings = {
        "options": TrainingOptions(lr=0.02, epochs=4), "without": without, "folder": tmp_path,
    }  # fmt: skip
    located = np.array([1, 5, 70])
    arms = enhanced(ask(letters(6)), located, "letters", ["letters"], RandomSets(2), **settings)
    assert [arm.arm for arm in arms] == [
        "untuned", "located", "without located", "random 1", "random 2",
    ]  # fmt: skip
    assert [arm.neurons for arm in arms] == [0, 3, 125, 3, 3]
    assert arms[0].change.value == 0
    assert arms[1].log_probability_change.value > 0
    gained = [arm.log_probability_change.value for arm in arms]
    assert gained[2] > gained[1]
    assert arms[1].share_of_parameters < arms[2].share_of_parameters / 30
    after = neurons.model.model.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert len(list(tmp_path.glob("*.safetensors"))) == 4
