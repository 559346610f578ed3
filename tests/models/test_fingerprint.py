"""Fingerprints of weights."""

import torch

from broca.models.fingerprint import fingerprint
from broca.testing import tiny_llama


def test_equal_weights_have_equal_fingerprints():
    """Two models made from one seed have the same fingerprint."""
    assert fingerprint(tiny_llama(seed=3)) == fingerprint(tiny_llama(seed=3))


def test_one_changed_weight_changes_the_fingerprint():
    """The smallest change of one weight changes the fingerprint."""
    model = tiny_llama()
    before = fingerprint(model)
    weight = model.model.layers[1].self_attn.o_proj.weight
    with torch.no_grad():
        weight[3, 3] = torch.nextafter(weight[3, 3], torch.tensor(9.0))
    assert fingerprint(model) != before


def test_number_format_is_part_of_the_fingerprint():
    """The same weights rounded to bfloat16 have another fingerprint."""
    assert fingerprint(tiny_llama()) != fingerprint(tiny_llama().bfloat16())


def test_the_digest_in_another_number_format_is_that_of_the_cast_model():
    """A fingerprint in another number format equals that of the model cast to it."""
    stored = tiny_llama().bfloat16()
    cast = fingerprint(stored, dtype=torch.float32)
    assert cast != fingerprint(stored)
    assert cast == fingerprint(stored.float())
