"""Replacements of heads' outputs, compared with the definition at every token."""

import pytest
import torch

from broca.stress_tests import stand_ins
from broca.stress_tests.patching import Patcher

PROMPTS = ((5, 9, 4, 7), (8, 2, 6, 3), (1, 3, 2, 9))
SOURCES = ((4, 4, 1, 2), (7, 7, 7, 1), (2, 5, 8, 6))
COLUMNS = (1, 6)


@pytest.fixture
def patcher(tiny):
    """A patcher of the tiny model, in use and without gradients."""
    with tiny.in_use(), torch.inference_mode():
        yield Patcher(tiny)


def heads(patcher, state, columns=COLUMNS):
    """Returns the outputs of the named heads in a state, `(prompts, tokens, heads, width)`."""
    return patcher.heads_of(state, columns)


def test_zeros_need_no_state(patcher):
    """`Zeros` has no state, because a gate of 0 writes the zeros."""
    assert stand_ins.ablated("zero", 3) == stand_ins.Zeros()
    assert stand_ins.Zeros().state(patcher, PROMPTS, COLUMNS) is None


def test_the_mean_is_over_tokens_and_prompts(patcher):
    """Every token of every prompt gets the heads' mean output over tokens and prompts."""
    written = heads(patcher, stand_ins.ablated("mean", 3).state(patcher, PROMPTS, COLUMNS))
    mean = heads(patcher, patcher.state(PROMPTS)).mean((0, 1))
    torch.testing.assert_close(written, mean.expand_as(written))


def test_resampled_outputs_are_another_prompts(patcher):
    """Resampled outputs are a permutation of the prompts' outputs that the seed decides."""
    intact = heads(patcher, patcher.state(PROMPTS))
    orders = []
    for seed in range(6):
        stand_in = stand_ins.ablated("resample", seed)
        written = heads(patcher, stand_in.state(patcher, PROMPTS, COLUMNS))
        order = [
            next(place for place in range(3) if torch.equal(row, intact[place])) for row in written
        ]
        orders.append(tuple(order))
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len(set(orders)) > 1


def test_sources_are_aligned_at_the_last_token(patcher):
    """Sources of equal length replace all tokens, shorter ones the last tokens."""
    same_length = heads(patcher, stand_ins.OutputsOf(SOURCES).state(patcher, PROMPTS, COLUMNS))
    assert torch.equal(same_length, heads(patcher, patcher.state(SOURCES)))
    shorter = tuple(source[1:] for source in SOURCES)
    written = heads(patcher, stand_ins.OutputsOf(shorter).state(patcher, PROMPTS, COLUMNS))
    assert torch.equal(written[:, 1:], heads(patcher, patcher.state(shorter)))
    assert torch.equal(written[:, :1], heads(patcher, patcher.state(PROMPTS))[:, :1])


def test_noise_is_as_far_away_as_the_sources(patcher):
    """Noise has the sources' distance at every head and token; the seed decides its direction."""
    intact = heads(patcher, patcher.state(PROMPTS))
    distance = (heads(patcher, patcher.state(SOURCES)) - intact).norm(dim=-1)
    written = [
        heads(patcher, stand_ins.Noise(SOURCES, seed).state(patcher, PROMPTS, COLUMNS))
        for seed in (0, 1)
    ]
    for outputs in written:
        torch.testing.assert_close((outputs - intact).norm(dim=-1), distance, rtol=1e-3, atol=1e-5)
    assert not torch.equal(*written)


def test_parts_are_restored_and_the_rest_is_zero(patcher):
    """Disjoint parts sum to the intact outputs; four dimensions are the best rank-4 part."""
    intact = heads(patcher, patcher.state(PROMPTS))

    def restored(**part):
        return heads(patcher, stand_ins.RestoredPart(**part).state(patcher, PROMPTS, COLUMNS))

    first, second = restored(head=0), restored(head=1)
    assert torch.equal(first + second, intact)
    assert not first[:, :, 1].any()
    last, others = restored(tokens="last"), restored(tokens="all but last")
    assert torch.equal(last + others, intact)
    assert not last[:, :-1].any()
    assert torch.equal(restored(), intact)
    low_rank = restored(dimensions=4).flatten(2).flatten(0, 1)
    assert torch.linalg.matrix_rank(low_rank, rtol=1e-4) == 4
    full_rank = intact.flatten(2).flatten(0, 1)
    assert torch.linalg.matrix_rank(full_rank, rtol=1e-4) > 4
    left_out = torch.linalg.svdvals(full_rank)[
        4:
    ].norm()  # no other four dimensions leave a smaller remainder
    torch.testing.assert_close((full_rank - low_rank).norm(), left_out, rtol=1e-3, atol=1e-4)


def test_other_heads_keep_their_outputs(patcher):
    """Parts and noise overwrite only the named heads."""
    state = patcher.state(PROMPTS)
    untouched = [column for column in range(8) if column not in COLUMNS]
    for stand_in in (stand_ins.RestoredPart("last"), stand_ins.Noise(SOURCES, 0)):
        written = stand_in.state(patcher, PROMPTS, COLUMNS)
        assert torch.equal(heads(patcher, written, untouched), heads(patcher, state, untouched))


def test_an_operation_is_added_as_its_mean_offset(patcher):
    """Each prompt gets its operation's mean offset; random directions have the same norm."""
    operations = (PROMPTS, SOURCES)
    neutral = ((3, 3, 4, 7), (3, 2, 6, 3), (3, 3, 2, 9))
    base = ((9, 9, 4, 7), (9, 2, 6, 3))
    offset = stand_ins.OperationOffset(operations, neutral, operations=(1, 0))
    written = offset.state(patcher, base, ())
    intact = patcher.state(base)
    for point, values in written.items():
        for row, operation in enumerate((1, 0)):
            expected = (
                patcher.state(operations[operation])[point] - patcher.state(neutral)[point]
            ).mean(0)
            torch.testing.assert_close(
                values[row] - intact[point][row], expected, rtol=1e-3, atol=1e-5
            )
    random = stand_ins.OperationOffset(operations, neutral, (1, 0), seed=0).state(patcher, base, ())
    for point, values in random.items():
        added = values - intact[point]
        expected = written[point] - intact[point]
        torch.testing.assert_close(added.norm(), expected.norm(), rtol=1e-3, atol=1e-5)
        assert not torch.allclose(added, expected)
