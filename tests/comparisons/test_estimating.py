"""Effects and their errors against explicit formulas and simulated truth."""

import numpy as np
import pytest

from broca.comparisons.estimating import (
    FEWEST_ROWS,
    EffectEstimates,
    discoveries,
    estimate_effects,
    row_count,
)
from broca.errors import BadInput


def simulated(seed, *, rows=600, components=12, items=40, effects=None, slopes=0.3, noise=0.5):
    """Returns random masks, changes whose effects vary by item around known means, and items."""
    rng = np.random.default_rng(seed)
    masks = rng.random((rows, components)) < 0.25
    item = rng.integers(items, size=rows)
    means = np.zeros(components) if effects is None else effects
    of_item = means + slopes * rng.normal(size=(items, components))
    changes = (masks * of_item[item]).sum(axis=1) + noise * rng.normal(size=rows)
    return masks, changes, item


def test_effects_and_errors_are_those_of_the_formula():
    """Effects are least squares and errors the clustered sandwich of items, written as loops."""
    masks, changes, item = simulated(0)
    estimates = estimate_effects(masks, changes, item)
    design = np.column_stack([np.ones(len(masks)), masks])
    coefficients, *_ = np.linalg.lstsq(design, changes, rcond=None)
    residuals = changes - design @ coefficients
    bread = np.linalg.pinv(design.T @ design)
    meat = np.zeros_like(bread)
    for number in range(40):
        rows = item == number
        score = design[rows].T @ residuals[rows]
        meat += np.outer(score, score)
    correction = 40 / 39 * (600 - 1) / (600 - 13)
    errors = np.sqrt(np.diag(correction * bread @ meat @ bread))
    np.testing.assert_allclose(estimates.values, coefficients[1:], atol=1e-10)
    np.testing.assert_allclose(estimates.errors, errors[1:], rtol=1e-8)
    assert estimates.freedom == 39


def test_intervals_hold_for_new_items():
    """At least nine in ten of 95 % intervals contain the true effect although items differ."""
    effects = np.linspace(-0.5, 0.5, 12)
    held = []
    for seed in range(60):
        low, high = estimate_effects(*simulated(seed, effects=effects)).intervals()
        held += ((low <= effects) & (effects <= high)).tolist()
    assert 0.91 <= np.mean(held) <= 0.985


def test_p_values_are_even_without_effects_and_few_discoveries_are_false():
    """At a false discovery rate of 5 %, discoveries without an effect are rare."""
    p_values = np.stack([estimate_effects(*simulated(seed)).p_values() for seed in range(80)])
    assert 0.03 <= np.mean(p_values <= 0.05) <= 0.08
    assert np.mean([(discoveries(line) <= 0.05).any() for line in p_values]) <= 0.12


def test_what_the_rows_have_in_common_cancels():
    """Of two models with equal answers except for a component, only this component differs."""
    rng = np.random.default_rng(1)
    effects = -np.abs(rng.normal(size=12))
    masks, first, item = simulated(2, effects=effects, slopes=0.6, noise=1.0)
    second = first + 0.3 * masks[:, 4] + 0.05 * rng.normal(size=len(first))
    paired = estimate_effects(masks, second - first, item)
    apart = estimate_effects(masks, second, item)
    assert paired.errors.max() < apart.errors.min() / 5
    assert np.flatnonzero(discoveries(paired.p_values()) <= 0.05).tolist() == [4]
    assert paired.values[4] == pytest.approx(0.3, abs=0.03)


def test_discoveries_are_those_of_benjamini_and_hochberg():
    """The q-values equal those of the step-up procedure, computed by hand."""
    p = np.array([0.01, 0.04, 0.03, 0.5])
    np.testing.assert_allclose(discoveries(p), [0.04, 0.16 / 3, 0.16 / 3, 0.5])


def test_an_effect_without_noise_is_sure():
    """Without noise, an effect of zero has a p-value of 1 and any other effect 0."""
    estimates = EffectEstimates(np.array([0.0, 0.2]), np.array([0.0, 0.0]), 9)
    assert estimates.p_values().tolist() == [1.0, 0.0]


def test_too_few_rows_or_items_are_refused():
    """Too few items, rows or distinct masks are refused; the default grows with components."""
    masks, changes, item = simulated(0)
    with pytest.raises(BadInput, match="9 items are too few"):
        estimate_effects(masks, changes, item % 9)
    with pytest.raises(BadInput, match="do not separate 12 components"):
        estimate_effects(np.repeat(masks[:5], 120, axis=0), changes, item)
    assert row_count(None, 48) == FEWEST_ROWS
    assert row_count(None, 1000) == 6000
    assert row_count(300, 48) == 300
    with pytest.raises(BadInput, match="`rows` 100 is too few to compare 48 components"):
        row_count(100, 48)
