"""Digests by content identify equal rows in every process."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from journals import CONDITION, NAMES

from broca.journal.keys import components_digest, mask_digests

CHANGES = {
    "weights": "v", "tokenizer": "u", "dtype": "bfloat16", "ablation": "mean", "scale": 0.5,
    "seed": 1, "donors": "d", "response": "accuracy", "gradients": True,
}  # fmt: skip


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_of_a_condition_is_in_its_digest(field):
    """A change of any field of a condition changes its digest."""
    assert set(CHANGES) == set(asdict(CONDITION))
    assert replace(CONDITION, **{field: CHANGES[field]}).digest() != CONDITION.digest()
    assert replace(CONDITION).digest() == CONDITION.digest()


def test_digests_are_the_same_in_every_process_and_version():
    """Digests equal fixed bytes; with other digests existing journals would lose their rows."""
    assert CONDITION.digest().hex() == "ba3972857feaafa9ac3b3f3f14bc30dc"
    columns = components_digest(NAMES)
    assert columns.hex() == "b943fac2cfb5c00cdcedd36155e15137"
    assert (
        mask_digests(np.eye(9, dtype=bool)[:1], columns)[0].hex()
        == "8f6c38c8c04ce28b9b7bdc4d5b227a28"
    )


def test_columns_have_an_order():
    """The same names in another order, or divided otherwise, have another digest."""
    assert components_digest(NAMES) != components_digest(NAMES[::-1])
    assert components_digest(("L0H1", "L0H2")) != components_digest(("L0H1L0H2",))


def test_masks_are_told_apart_in_every_bit():
    """Masks that differ in one bit, also in the last byte, or in columns have other digests."""
    masks = np.vstack([np.zeros((1, 9), dtype=bool), np.eye(9, dtype=bool)])
    digests = mask_digests(masks, components_digest(NAMES))
    assert len(set(digests)) == 10
    assert {len(digest) for digest in digests} == {16}
    assert mask_digests(masks[::-1], components_digest(NAMES)) == digests[::-1]
    assert not set(mask_digests(masks, components_digest(NAMES[::-1]))) & set(digests)
