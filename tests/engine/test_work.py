"""Units of work: their lengths, their order and their gates."""

import pytest
import torch

from broca.engine.work import Decoding, Masking, Reading, longest_first
from broca.models import GatePoint
from broca.tasks import Request


def generation(context, *, mask=0, donor=0, limit=4):
    """Returns a generation from a context of that many tokens."""
    request = Request("generate_until", tuple(range(context)), max_new_tokens=limit)
    return Decoding(mask, donor, 0, request)


def test_what_can_be_shared_leaves_the_logits_that_are_needed():
    """The sharable prefix excludes the longest continuation, and the last token of a prompt."""
    reading = Reading(0, 0, (1, 2, 3, 4, 5), [(0, (9,)), (1, (8, 7))])
    assert (reading.length, reading.sharable) == (5, 3)
    decoding = generation(6, limit=10)
    assert (decoding.length, decoding.sharable, len(decoding.tokens)) == (16, 5, 6)


def test_longest_first_is_stable():
    """Work of equal length keeps its order, so that batches are reproducible."""
    work = [generation(n, mask=mask) for mask, n in enumerate((3, 8, 3, 5, 8))]
    assert [(row.length, row.mask) for row in longest_first(work)] == [
        (12, 1), (12, 4), (9, 3), (7, 0), (7, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("donors", [0, 2])
def test_rows_get_the_gates_of_their_mask_and_the_activations_of_their_donor(donors):
    """Each row gets the gates of its mask and its donor's activations; without donors, none."""
    gates = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    point = GatePoint(torch.nn.Linear(2, 2), "layer", 0, "input", 0, 2, 1)
    values = {point: torch.tensor([[1.0, 2.0], [3.0, 4.0]])} if donors else {}
    work = [generation(3, mask=2, donor=1), generation(2, mask=0), generation(4, mask=2)]
    rows, replacement = Masking(gates, values).of(work)
    assert torch.equal(rows, gates[[2, 0, 2]])
    if donors:
        assert torch.equal(replacement[point], values[point][[1, 0, 0]])
    else:
        assert replacement == {}
