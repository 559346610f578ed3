"""Additivity of effects."""

import numpy as np
import pytest

from broca import designs
from broca.recovery import PaperLasso, additivity


def test_additive_responses_are_explained():
    """The model explains nearly all variance without noise and about half with equal noise."""
    masks = designs.stratified(200, 40, sparsity=0.1, seed=0)
    signal = masks @ np.where(np.arange(40) < 4, -0.3, 0.0)
    noise = np.random.default_rng(0).normal(0, signal.std(), 200)
    clear = additivity(masks, signal, PaperLasso(), seed=0)
    assert clear.explained > 0.97
    assert clear.rank_correlation > 0.8
    assert clear.masks == 200
    assert additivity(masks, signal + noise, PaperLasso(), seed=0).explained == pytest.approx(
        0.5, abs=0.2
    )


def test_what_does_not_add_up_is_not_explained():
    """The parity of two columns has no main effects and is not explained."""
    masks = np.random.default_rng(0).random((200, 12)) < 0.5
    parity = (masks[:, 0] ^ masks[:, 1]).astype(float)
    assert additivity(masks, parity, PaperLasso(), seed=0).explained < 0.1


def test_held_out_masks_are_not_seen():
    """With more columns than masks, a fit explains its own masks and no held-out mask."""
    rng = np.random.default_rng(1)
    masks, y = rng.random((40, 200)) < 0.3, rng.normal(size=40)
    fitted = PaperLasso(alpha=0.001).fit(masks, y)
    assert np.var(y - fitted.predict(masks)) < 0.1 * np.var(y)
    assert additivity(masks, y, PaperLasso(alpha=0.001), seed=0).explained < 0.2


def test_few_or_equal_responses_give_none():
    """Fewer than 20 responses or equal responses give None."""
    masks = designs.stratified(30, 12, sparsity=0.1, seed=0)
    assert additivity(masks, np.ones(30), PaperLasso(), seed=0) is None
    assert additivity(masks[:19], np.arange(19.0), PaperLasso(), seed=0) is None
