"""Measurement matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca import designs
from broca.errors import BadInput


@given(
    masks=st.integers(1, 60), components=st.integers(4, 120),
    sparsity=st.floats(0.26, 0.9), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_stratified_rows_and_columns_are_balanced(masks, components, sparsity, seed):
    """Every mask ablates int(s N) components; column counts differ by at most one."""
    design = designs.stratified(masks, components, sparsity=sparsity, seed=seed)
    assert set(design.sum(axis=1)) == {int(sparsity * components)}
    assert np.ptp(design.sum(axis=0)) <= 1


def test_bernoulli_has_the_asked_density():
    """The share of ablated entries is the sparsity, within five standard deviations."""
    design = designs.bernoulli(400, 500, sparsity=0.1, seed=0)
    assert abs(design.mean() - 0.1) < 5 * np.sqrt(0.1 * 0.9 / design.size)


@pytest.mark.parametrize("design", [designs.bernoulli, designs.stratified])
def test_seed_decides_the_design(design):
    """The same seed gives the same matrix; another seed gives another matrix."""
    first = design(20, 50, sparsity=0.1, seed=3)
    np.testing.assert_array_equal(first, design(20, 50, sparsity=0.1, seed=3))
    assert (first != design(20, 50, sparsity=0.1, seed=4)).any()


def test_singles_ablate_one_component_each():
    """Mask i ablates component i alone; the intact mask ablates none."""
    np.testing.assert_array_equal(designs.singles(4).nonzero(), [np.arange(4), np.arange(4)])
    assert not designs.intact(4).any()


@pytest.mark.parametrize("design", [designs.bernoulli, designs.stratified])
@pytest.mark.parametrize("sparsity", [0, 1, -0.1, 1.5])
def test_sparsity_outside_0_and_1_is_refused(design, sparsity):
    """Both designs need a sparsity between 0 and 1, and masks."""
    with pytest.raises(BadInput, match="between 0 and 1"):
        design(5, 10, sparsity=sparsity, seed=0)
    with pytest.raises(BadInput, match="needs masks"):
        design(0, 10, sparsity=0.2, seed=0)
    with pytest.raises(BadInput, match=r"ablates none of 49 .*at least 0\.0206"):
        designs.stratified(5, 49, sparsity=0.0204, seed=0)
    with pytest.raises(BadInput, match="use one-shot"):
        designs.stratified(5, 1, sparsity=0.5, seed=0)
    assert designs.stratified(5, 49, sparsity=0.0206, seed=0).sum() == 5


@pytest.mark.parametrize("per_mask", [1, 3])
def test_fresh_masks_are_balanced_over_components_and_items(per_mask):
    """Counts differ by at most one, masks have equal sizes, and no mask meets an item twice.

    Items and components are paired at random: every count is near its mean.
    """
    masks, index, met = designs.fresh(500, 96, items=30, size=7, items_per_mask=per_mask, seed=3)
    assert (masks.sum(axis=1) == 7).all()
    assert np.ptp(masks.sum(axis=0)) <= 1
    assert np.ptp(np.bincount(met, minlength=30)) <= 1
    assert len(index) == len(met) == 500
    assert len(masks) == -(-500 // per_mask)
    assert len(set(zip(index.tolist(), met.tolist(), strict=True))) == 500
    masks, index, met = designs.fresh(6000, 20, items=10, size=4, seed=0)
    table = np.zeros((10, 20))
    np.add.at(table, met, masks[index].astype(float))
    assert abs(table - 120).max() < 5 * np.sqrt(120)


@pytest.mark.parametrize(("size", "per_mask"), [(0, 1), (9, 1), (2, 0), (2, 6)])
def test_impossible_fresh_masks_are_refused(size, per_mask):
    """A mask must ablate 1 to all components and be used on 1 to all items."""
    with pytest.raises(BadInput, match="a mask"):
        designs.fresh(10, 8, items=5, size=size, items_per_mask=per_mask, seed=0)
