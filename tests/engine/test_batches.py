"""Batches of padded rows, and batches of suffixes on prefixes that are read once."""

import pytest
import torch

from broca.engine.batches import plain_batch, shared_batches
from broca.engine.prefixes import PrefixGroup
from broca.engine.work import Masking, Reading


@pytest.fixture(scope="module")
def masking():
    """Three masks of 8 heads without replacement."""
    gates = torch.ones(3, 8)
    gates[1, [0, 6]] = gates[2, 3] = 0
    return Masking(gates, {})


def readings(mask, prefix, suffixes):
    """Returns rows that share a prefix under one mask."""
    return [Reading(mask, 0, (*prefix, *suffix), [(0, (1,))]) for suffix in suffixes]


@pytest.fixture(scope="module")
def groups():
    """Two groups whose prefixes and suffixes differ in length, under different masks."""
    long, short = tuple(range(20, 32)), (90, 91, 92)
    return [
        PrefixGroup(long, tuple(readings(1, long, [(5,), (6, 7, 8), (9, 10)]))),
        PrefixGroup(short, tuple(readings(2, short, [(11, 12, 13, 14), (15,)]))),
    ]


def alone(tiny, reading, masking):
    """Returns the logits after a row's last token, without padding, cache or other rows."""
    tokens = torch.tensor([reading.tokens])
    gates, _ = masking.of([reading])
    with tiny.gates(gates):
        return tiny.forward(tokens, torch.ones_like(tokens), keep=1)[0][0, -1]


@torch.inference_mode()
def test_padded_rows_give_what_they_give_alone(tiny, groups, masking):
    """Whole sequences under several masks give the same logits in one batch as alone."""
    work = [row for group in groups for row in group.members]
    batch = plain_batch(tiny, work, masking)
    assert batch.read == sum(len(row.tokens) for row in work)
    assert batch.cache is None
    with batch.gates:
        logits, _ = tiny.forward(batch.tokens, batch.attention, keep=1)
    for row, reading in enumerate(batch.work):
        torch.testing.assert_close(logits[row, -1], alone(tiny, reading, masking))


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_suffixes_on_prefixes_give_what_whole_sequences_give(tiny, groups, masking, rows):
    """Logits do not depend on the batch size; every row appears once, every prefix is read once."""
    done, read = [], 0
    for batch in shared_batches(tiny, groups, masking, rows=rows):
        assert len(batch.work) <= rows
        with batch.gates:
            logits, _ = tiny.forward(batch.tokens, batch.attention, keep=1, cache=batch.cache)
        for row, reading in enumerate(batch.work):
            torch.testing.assert_close(logits[row, -1], alone(tiny, reading, masking))
        done += batch.work
        read += batch.read
    members = [row for group in groups for row in group.members]
    assert sorted(map(members.index, done)) == list(range(len(members)))
    suffixes = sum(len(r.tokens) - len(g.prefix) for g in groups for r in g.members)
    assert read == sum(len(group.prefix) for group in groups) + suffixes
