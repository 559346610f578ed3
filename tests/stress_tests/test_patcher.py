"""Forward passes with heads' outputs replaced, what is written, and the observations of both."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from independent import sliced
from stress_tests.conftest import observer

from broca.errors import BadInput
from broca.stress_tests.patcher import (
    Ablated,
    AnswerLogProbs,
    HeadOutputs,
    Noise,
    OperationOffset,
    OutputsOf,
    Patcher,
    RestoredPart,
)

PROMPTS = ((5, 9, 4, 7), (8, 2, 6, 3), (1, 3, 2, 9))
SOURCES = ((4, 4, 1, 2), (7, 7, 7, 1), (2, 5, 8, 6))
TOKENS = ((1, 2, 3), (4, 5, 6), (7, 8, 9))
COLUMNS = (1, 6)


@pytest.fixture
def patcher(tiny):
    """A patcher of the tiny model, in use and without gradients."""
    with tiny.in_use(), torch.inference_mode():
        yield Patcher(tiny)


def test_writing_replaces_exactly_what_is_named(patcher):
    """Writing zeros equals a gate of 0; writing a prompt's own outputs changes no bit."""
    state = patcher.state(PROMPTS)
    zeros = {point: torch.zeros_like(values) for point, values in state.items()}
    intact, ablated = patcher.log_probs(PROMPTS), patcher.log_probs(PROMPTS, COLUMNS)
    assert torch.equal(patcher.log_probs(PROMPTS, COLUMNS, zeros), ablated)
    assert torch.equal(patcher.log_probs(PROMPTS, range(8), state), intact)
    assert not torch.equal(ablated, intact)


def test_a_write_at_some_tokens_leaves_the_others(patcher, tiny):
    """The write equals a separate hook that overwrites one head at one token."""
    prompts = ((5, 9, 4, 7),)
    state = patcher.state(prompts)
    outputs = patcher.heads_of(state, [2])
    outputs[:, 1] = 3.0
    log_probs = patcher.log_probs(prompts, [2], patcher.with_heads(state, [2], outputs))
    projection = tiny.model.model.layers[0].self_attn.o_proj
    with torch.no_grad(), sliced(projection, 16, 24, 3.0, tokens=1):
        expected = tiny.model(torch.tensor(prompts)).logits[:, -1].log_softmax(-1)
    torch.testing.assert_close(log_probs, expected, rtol=1e-4, atol=1e-5)


def test_prompts_of_several_lengths_are_refused(patcher):
    """Prompts of different lengths are refused, because a batch has no padding."""
    with pytest.raises(BadInput, match="one length"):
        patcher.log_probs(((1, 2), (1, 2, 3)))


@pytest.fixture
def written(patcher):
    """Returns a function that gives the heads' outputs after a write."""
    return lambda write: patcher.heads_of(write.state(patcher, PROMPTS, COLUMNS), COLUMNS)


@pytest.fixture
def intact(patcher):
    """The heads' intact outputs, `(prompts, tokens, heads, width)`."""
    return patcher.heads_of(patcher.state(PROMPTS), COLUMNS)


def test_heads_are_ablated(written, intact):
    """The mean is over tokens and prompts; resampled outputs are a permutation of the prompts'."""
    mean = intact.mean((0, 1))
    torch.testing.assert_close(written(Ablated("mean", 3)), mean.expand_as(intact))
    orders = set()
    for seed in range(6):
        rows = written(Ablated("resample", seed))
        orders.add(tuple(n for row in rows for n in range(3) if torch.equal(row, intact[n])))
    assert orders == {(1, 2, 0), (2, 0, 1)}  # no prompt keeps its own


def test_sources_are_aligned_at_the_last_token(patcher, written, intact):
    """Sources of equal length replace all tokens, shorter ones the last tokens."""
    for sources in (SOURCES, tuple(source[1:] for source in SOURCES)):
        outputs, tokens = written(OutputsOf(sources)), len(sources[0])
        expected = patcher.heads_of(patcher.state(sources), COLUMNS)
        assert torch.equal(outputs[:, -tokens:], expected)
        assert torch.equal(outputs[:, :-tokens], intact[:, :-tokens])


def test_noise_is_as_far_away_as_the_sources(patcher, written, intact):
    """Noise has the sources' distance at every head and token; other heads are unchanged."""
    sources = patcher.heads_of(patcher.state(SOURCES), COLUMNS)
    first, second = (written(Noise(SOURCES, seed)) - intact for seed in (0, 1))
    for noise in (first, second):
        expected = (sources - intact).norm(dim=-1)
        torch.testing.assert_close(noise.norm(dim=-1), expected, rtol=1e-3, atol=1e-5)
    assert not torch.equal(first, second)
    others = [column for column in range(8) if column not in COLUMNS]
    state = Noise(SOURCES, 0).state(patcher, PROMPTS, COLUMNS)
    expected = patcher.heads_of(patcher.state(PROMPTS), others)
    assert torch.equal(patcher.heads_of(state, others), expected)


def test_parts_are_restored_and_the_rest_is_zero(written, intact):
    """Disjoint parts sum to the intact outputs; four dimensions are the best rank-4 part."""
    first, second = written(RestoredPart(head=0)), written(RestoredPart(head=1))
    assert torch.equal(first + second, intact)
    assert not first[:, :, 1].any()
    last, others = written(RestoredPart("last")), written(RestoredPart("all but last"))
    assert torch.equal(last + others, intact)
    assert not last[:, :-1].any()
    assert torch.equal(written(RestoredPart()), intact)
    low_rank = written(RestoredPart(dimensions=4)).flatten(2).flatten(0, 1)
    full_rank = intact.flatten(2).flatten(0, 1)
    ranks = [int(torch.linalg.matrix_rank(each, rtol=1e-4)) for each in (low_rank, full_rank)]
    assert ranks[0] == 4 < ranks[1]
    left_out = torch.linalg.svdvals(full_rank)[4:].norm()  # no other four dimensions leave less
    torch.testing.assert_close((full_rank - low_rank).norm(), left_out, rtol=1e-3, atol=1e-4)


def test_an_operation_is_added_as_its_mean_offset(patcher):
    """Each prompt gets its operation's mean offset; random directions have the same norm."""
    operations = (PROMPTS, SOURCES)
    neutral = ((3, 3, 4, 7), (3, 2, 6, 3), (3, 3, 2, 9))
    base = ((9, 9, 4, 7), (9, 2, 6, 3))
    offset = OperationOffset(operations, neutral, operations=(1, 0))
    written = offset.state(patcher, base, ())
    intact = patcher.state(base)
    for point, values in written.items():
        for row, operation in enumerate((1, 0)):
            asking = patcher.state(operations[operation])[point]
            expected = (asking - patcher.state(neutral)[point]).mean(0)
            added = values[row] - intact[point][row]
            torch.testing.assert_close(added, expected, rtol=1e-3, atol=1e-5)
    random = OperationOffset(operations, neutral, (1, 0), seed=0).state(patcher, base, ())
    for point, values in random.items():
        added = values - intact[point]
        expected = written[point] - intact[point]
        torch.testing.assert_close(added.norm(), expected.norm(), rtol=1e-3, atol=1e-5)
        assert not torch.allclose(added, expected)


def test_answers_are_read_while_heads_are_written(tiny):
    """The vector has the named tokens' log-probabilities while the heads are overwritten."""
    with tiny.in_use():
        patcher = Patcher(tiny)
        expected = patcher.log_probs(PROMPTS, [1, 5], patcher.state(SOURCES))
    (vector,) = observer(tiny)([AnswerLogProbs(PROMPTS, (1, 5), TOKENS, OutputsOf(SOURCES))])
    assert vector.dtype == np.float32
    expected_vector = [float(expected[row, token]) for row in range(3) for token in TOKENS[row]]
    assert vector.tolist() == expected_vector
    (outputs,) = observer(tiny)([HeadOutputs(PROMPTS, (3, 0))])
    with tiny.in_use():
        expected = Patcher(tiny).heads_of(Patcher(tiny).state(PROMPTS), [3, 0])[:, -1]
    assert torch.equal(torch.from_numpy(outputs), expected.flatten())


def test_the_key_holds_all_that_decides(tiny):
    """Observations that differ in kind, prompts, heads, tokens or writes have different keys."""
    base = AnswerLogProbs(PROMPTS, (1, 5), TOKENS, Noise(PROMPTS, 0))
    changes = (
        {"prompts": SOURCES}, {"columns": (5, 1)}, {"tokens": TOKENS[::-1]},
        {"write": Noise(PROMPTS, 1)}, {"write": Noise(SOURCES, 0)}, {"write": OutputsOf(PROMPTS)},
    )  # fmt: skip
    others = [*(replace(base, **changed) for changed in changes), HeadOutputs(PROMPTS, (1, 5))]
    identities = {(observation.kind, observation.key) for observation in (base, *others)}
    assert len(identities) == 8
    assert pickle.loads(pickle.dumps(base)).key == base.key
