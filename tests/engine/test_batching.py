"""Batches: sorted, padded on the left, within the budget."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from broca.engine.batching import left_padded, longest_first, next_batch


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 500))
def test_batches_cover_the_work_within_the_budget(lengths, budget):
    """Every piece is in one batch; a batch of several keeps to the budget."""
    work = longest_first(lengths, lambda length: length)
    covered = []
    while work:
        size = next_batch(work, lambda length: length, budget=budget)
        batch, work = work[:size], work[size:]
        assert size == 1 or size * max(batch) <= budget
        covered += batch
    assert sorted(covered) == sorted(lengths)


def test_padding_is_on_the_left():
    """The last position of every row is its last token."""
    tokens, mask = left_padded([(5, 6, 7), (8,)], device=torch.device("cpu"))
    assert tokens.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 1]]
