"""Forward passes with heads' outputs overwritten."""

import pytest
import torch

from broca.errors import BadInput
from broca.models import GatedModel
from broca.stress_tests.patching import Patcher
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def patcher(tiny):
    """A patcher of the tiny model, which is in use."""
    with tiny.in_use():
        yield Patcher(tiny)


def test_writing_replaces_exactly_what_is_named(patcher):
    """Writing zeros equals a gate of 0; writing a prompt's own outputs changes no bit."""
    prompts = ((5, 9, 4, 7), (8, 2, 6, 3))
    state = patcher.state(prompts)
    zeros = {point: torch.zeros_like(values) for point, values in state.items()}
    intact = patcher.log_probs(prompts)
    assert torch.equal(
        patcher.log_probs(prompts, [1, 5], zeros), patcher.log_probs(prompts, [1, 5])
    )
    assert torch.equal(patcher.log_probs(prompts, range(8), state), intact)
    assert not torch.equal(patcher.log_probs(prompts, [1]), intact)


def test_a_write_at_some_tokens_leaves_the_others(patcher, tiny):
    """The write equals a separate hook that overwrites one head at one token."""
    prompts = ((5, 9, 4, 7),)
    state = patcher.state(prompts)
    outputs = patcher.heads_of(state, [2])
    outputs[:, 1] = 3.0
    log_probs = patcher.log_probs(prompts, [2], patcher.with_heads(state, [2], outputs))

    def hook(_module, args):
        changed = args[0].clone()
        changed[:, 1, 16:24] = 3.0
        return (changed,)

    handle = tiny.model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(hook)
    with torch.no_grad():
        expected = tiny.model(torch.tensor(prompts)).logits[:, -1].log_softmax(-1)
    handle.remove()
    torch.testing.assert_close(log_probs, expected, rtol=1e-4, atol=1e-5)


def test_states_are_read_once_and_not_changed(tiny):
    """A second read returns the same state, and writing leaves that state unchanged."""
    with tiny.in_use():
        patcher = Patcher(tiny, rows=2)
        prompts = ((5, 9, 4), (8, 2, 6), (1, 2, 3))  # two batches
        state = patcher.state(prompts)
        before = {point: values.clone() for point, values in state.items()}
        patcher.with_heads(state, [0], torch.full((3, 3, 1, 8), 7.0))
        assert patcher.state(prompts) is state
        assert all(torch.equal(state[point], values) for point, values in before.items())
        unbatched = Patcher(tiny).state(prompts)
        for point, values in unbatched.items():
            torch.testing.assert_close(state[point], values)


def test_few_states_are_held_in_memory(tiny):
    """After five reads the newest state is held and the oldest is read again."""
    with tiny.in_use():
        patcher = Patcher(tiny)
        states = [patcher.state(((number, 1, 2),)) for number in range(5)]
        assert patcher.state(((4, 1, 2),)) is states[4]
        assert patcher.state(((0, 1, 2),)) is not states[0]


def test_prompts_of_several_lengths_are_refused(patcher):
    """Prompts of different lengths are refused, because a batch has no padding."""
    with pytest.raises(BadInput, match="one length"):
        patcher.log_probs(((1, 2), (1, 2, 3)))


def test_other_components_than_heads_are_refused():
    """A model whose components include MLP blocks is refused."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="heads+mlp")
    with pytest.raises(BadInput, match="`components` heads"):
        Patcher(model)
