"""Models resume at a layer or at an output projection, by hooks and replaced forward passes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from broca.models.resuming import (
    Shortcut,
    captured_inputs,
    captured_outputs,
    resumed_at,
    taken_up,
    tuple_length_of,
)


def test_skipped_layers_are_restored_after_an_error(tiny):
    """An error within the context leaves no layer skipped."""
    tokens = torch.arange(2, 8)[None]
    with torch.no_grad():
        before = tiny.forward(tokens, torch.ones_like(tokens), keep=6)[0]
        with pytest.raises(ZeroDivisionError), tiny.resumed_at(1, torch.zeros(1, 6, 32)):
            raise ZeroDivisionError
        assert torch.equal(tiny.forward(tokens, torch.ones_like(tokens), keep=6)[0], before)


class Adding(nn.Module):
    """A layer that adds a number, counts its calls and may return a tuple."""

    def __init__(self, number, *, tuple_length=0):
        super().__init__()
        self.number, self.tuple_length, self.calls = number, tuple_length, 0

    def forward(self, hidden_states):
        """Returns the sum."""
        self.calls += 1
        states = hidden_states + self.number
        return (states, *["other"] * (self.tuple_length - 1)) if self.tuple_length else states


def through(layers, states, *, by_name=False):
    """Returns the output of the last layer."""
    output = states
    for layer in layers:
        output = layer(hidden_states=states) if by_name else layer(states)
        states = output[0] if isinstance(output, tuple) else output
    return output


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("tuple_length", [0, 1, 2])
def test_layers_below_the_start_do_not_run(by_name, tuple_length):
    """Layers below the start are skipped within the context, and run again afterwards."""
    layers = [Adding(10**n, tuple_length=tuple_length) for n in range(3)]
    states = torch.zeros(1, 2, 4)
    with resumed_at(layers, 1, torch.full((1, 2, 4), 5.0), tuple_length=tuple_length):
        output = through(layers, states, by_name=by_name)
    last = output[0] if tuple_length else output
    assert torch.equal(last, torch.full((1, 2, 4), 115.0))
    assert [layer.calls for layer in layers] == [0, 1, 1]
    after = through(layers, states, by_name=by_name)
    assert torch.equal(after[0] if tuple_length else after, torch.full((1, 2, 4), 111.0))
    assert not any("forward" in layer.__dict__ for layer in layers)


def test_what_another_library_put_in_place_comes_back():
    """A `forward` on the module itself is put back and not deleted."""
    layers = [Adding(1), Adding(2)]
    wrapped = layers[0].forward
    layers[0].forward = wrapped
    with resumed_at(layers, 1, torch.zeros(1), tuple_length=0):
        pass
    assert layers[0].__dict__["forward"] is wrapped


@pytest.mark.parametrize("by_name", [False, True])
def test_inputs_and_outputs_of_modules_are_captured(by_name):
    """Inputs and outputs of the last forward pass within the context are captured."""
    layers = [Adding(1), Adding(2)]
    with captured_inputs(layers) as inputs, captured_outputs(layers) as outputs:
        assert inputs == outputs == [None, None]
        through(layers, torch.zeros(2), by_name=by_name)
    through(layers, torch.full((2,), 100.0))
    assert [states.tolist() for states in inputs] == [[0, 0], [1, 1]]
    assert [states.tolist() for states in outputs] == [[1, 1], [3, 3]]


@pytest.mark.parametrize("tuple_length", [0, 1, 3])
def test_the_length_of_a_returned_tuple(tuple_length):
    """A returned tensor counts as a tuple of length 0."""
    assert tuple_length_of(Adding(1, tuple_length=tuple_length)(torch.zeros(2))) == tuple_length


@pytest.mark.parametrize("tuple_length", [0, 1, 3])
def test_attention_begins_at_its_output_projection(tuple_length):
    """Attention returns the projection of the given outputs in its form, and is then as before."""
    projection, attention = nn.Linear(4, 4), Adding(1)
    outputs = torch.arange(4.0)[None]
    with torch.no_grad():
        with taken_up(Shortcut(attention, projection, tuple_length), outputs):
            returned = attention(torch.zeros(1, 4), mask=None)
        projected = returned[0] if tuple_length else returned
        assert torch.equal(projected, projection(outputs))
        assert not tuple_length or returned[1:] == (None,) * (tuple_length - 1)
        assert attention.calls == 0
        assert torch.equal(attention(torch.zeros(1, 4)), torch.ones(1, 4))
