"""Measurement matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca import designs
from broca.errors import BadInput


@given(
    masks=st.integers(1, 60),
    components=st.integers(4, 120),
    sparsity=st.floats(0.26, 0.9),
    seed=st.integers(0, 2**32),
)
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


def test_stratified_refuses_a_sparsity_that_ablates_nothing():
    """The message names the smallest sparsity that ablates a component."""
    with pytest.raises(BadInput, match=r"ablates none of 10 .*at least 0\.1"):
        designs.stratified(5, 10, sparsity=0.05, seed=0)


@pytest.mark.parametrize("design", [designs.bernoulli, designs.stratified])
@pytest.mark.parametrize("sparsity", [0, 1, -0.1, 1.5])
def test_sparsity_outside_0_and_1_is_refused(design, sparsity):
    """Both designs need a sparsity between 0 and 1."""
    with pytest.raises(BadInput, match="between 0 and 1"):
        design(5, 10, sparsity=sparsity, seed=0)


def test_design_without_masks_is_refused():
    """A design needs at least one mask."""
    with pytest.raises(BadInput, match="needs masks"):
        designs.stratified(0, 10, sparsity=0.2, seed=0)
