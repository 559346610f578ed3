"""A model's neurons: their names, gates and parameters."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.models import GatedModel
from broca.neurons.neuron_model import NeuronModel
from broca.testing import tiny_llama, tiny_tokenizer


def test_names_and_columns_are_inverse(neurons):
    """Every neuron has a name; names that are not neurons of the model are refused."""
    every = neurons.names(np.arange(len(neurons)))
    assert every[0] == "L0N0"
    assert every[-1] == "L1N63"
    assert neurons.columns(every).tolist() == list(range(128))
    for wrong in ("L2N0", "L0N64", "L0H1"):
        with pytest.raises(BadInput, match="no neuron"):
            neurons.columns([wrong])


def test_masks_ablate_the_components_of_the_same_names(neurons):
    """Masks account for the heads before the neurons; an empty set ablates nothing."""
    masks = neurons.masks([np.array([0, 70]), np.array([], dtype=int)])
    names = np.array(neurons.model.components.names)
    assert names[masks[0]].tolist() == ["L0N0", "L1N6"]
    assert not masks[1].any()


def test_parameters_are_counted(neurons):
    """A neuron of a gated block has a column of `down` and a row each of `gate` and `up`."""
    assert set(neurons.parameter_counts().tolist()) == {3 * 32}


def test_a_model_without_neuron_gates_is_refused():
    """A model that was loaded with head gates alone is refused, as it cannot ablate neurons."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")
    with pytest.raises(BadInput, match="`components` 'neurons'"):
        NeuronModel(model)
