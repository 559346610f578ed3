"""Intervals, p-values and false discoveries, against truth and against least squares."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Lasso

from broca import designs
from broca.errors import BadInput
from broca.recovery.regressions import Standardized
from broca.recovery.uncertainty import DISCOVERY, additivity, interactions, uncertainty


def simulated(seed, *, masks=150, components=60, planted=4, noise=0.1):
    """Random masks, responses and true effects."""
    rng = np.random.default_rng(seed)
    design = designs.stratified(masks, components, sparsity=0.05, seed=seed)
    effects = np.zeros(components)
    effects[rng.choice(components, planted, replace=False)] = -np.linspace(0.3, 0.15, planted)
    return design, 1 + design @ effects + rng.normal(0, noise, masks), effects


def lasso(alpha=0.01):
    """Returns a Lasso of standardized responses."""
    return Standardized(Lasso(alpha=alpha))


def lasso_uncertainty(design, y, *, alpha=0.01):
    """Returns the uncertainty of a Lasso."""
    fitted = lasso(alpha).fit(design, y)
    return SimpleNamespace(**uncertainty(design, y, fitted, k=5, seed=0, resamples=30))


def test_intervals_cover_the_truth_and_discoveries_are_true():
    """90 % intervals cover at least 84 %, and at most a fifth of discoveries is false."""
    covered, false, discovered, planted = [], 0, 0, 0
    for seed in range(8):
        design, y, effects = simulated(seed)
        result = lasso_uncertainty(design, y)
        covered.append((result.intervals[:, 0] <= effects) & (effects <= result.intervals[:, 1]))
        discoveries = result.q_values <= DISCOVERY
        false += int((discoveries & (effects == 0)).sum())
        discovered += int(discoveries.sum())
        planted += int((discoveries & (effects < 0)).sum())
    assert 0.84 <= np.mean(covered) <= 0.96
    assert false <= 0.2 * discovered
    assert planted >= 0.9 * 4 * 8


def test_p_values_are_those_of_least_squares():
    """With one sure column, other p-values are Student's t in a regression with this column."""
    design, y, effects = simulated(3, planted=1, noise=0.03)
    result = lasso_uncertainty(design, y, alpha=0.1)
    (sure,) = np.flatnonzero(effects)
    assert result.frequency[sure] == 1
    column = (sure + 1) % 60
    matrix = np.column_stack([np.ones(150), design[:, [sure, column]]])
    solution, (squares,), _, _ = np.linalg.lstsq(matrix, y, rcond=None)
    error = np.sqrt(squares / 147 * np.linalg.inv(matrix.T @ matrix)[2, 2])
    assert result.p_values[column] == pytest.approx(stats.t.cdf(solution[2] / error, 147))
    half = stats.t.ppf(0.95, 147) * error
    np.testing.assert_allclose(result.intervals[column], [solution[2] - half, solution[2] + half])
    np.testing.assert_allclose(result.q_values, stats.false_discovery_control(result.p_values))


def test_equal_responses_and_few_masks_are_no_evidence():
    """Equal responses, few masks or a column never ablated give no interval and a p of one."""
    design, y, _ = simulated(0)
    for masks, responses in ((design, np.ones(150)), (design[:6], y[:6])):
        result = lasso_uncertainty(masks, responses)
        assert np.isnan(result.intervals).all()
        assert (result.p_values == 1).all()
    assert not lasso_uncertainty(design, np.ones(150)).frequency.any()
    design[:, 7] = False
    result = lasso_uncertainty(design, y)
    assert np.isnan(result.intervals[7]).all()
    assert result.p_values[7] == 1


def test_additive_responses_are_explained():
    """The model explains nearly all variance without noise and about half with equal noise."""
    masks = designs.stratified(200, 40, sparsity=0.1, seed=0)
    signal = masks @ np.where(np.arange(40) < 4, -0.3, 0.0)
    noise = np.random.default_rng(0).normal(0, signal.std(), 200)
    clear = additivity(masks, signal, lasso(), seed=0)
    assert clear.explained > 0.97
    assert clear.rank_correlation > 0.8
    assert clear.masks == 200
    half = additivity(masks, signal + noise, lasso(), seed=0)
    assert half.explained == pytest.approx(0.5, abs=0.2)


def test_what_does_not_add_up_is_not_explained():
    """Neither the parity of two columns nor held-out masks of an overfitted model are explained.

    Fewer than 20 responses and equal responses have no additivity.
    """
    rng = np.random.default_rng(0)
    masks = rng.random((200, 12)) < 0.5
    parity = (masks[:, 0] ^ masks[:, 1]).astype(float)
    assert additivity(masks, parity, lasso(), seed=0).explained < 0.1
    wide, noise = rng.random((40, 200)) < 0.3, rng.normal(size=40)
    assert np.var(noise - lasso(0.001).fit(wide, noise).predict(wide)) < 0.1 * np.var(noise)
    assert additivity(wide, noise, lasso(0.001), seed=0).explained < 0.2
    assert additivity(masks, np.ones(200), lasso(), seed=0) is None
    assert additivity(masks[:19], np.arange(19.0), lasso(), seed=0) is None


def test_planted_interactions_of_two_and_four_are_found_and_nothing_else():
    """A planted pair and four together are named with their effects; sums of effects name none.

    Products explain what noise leaves. Masks that ablate one component each are refused.
    """
    rng, names = np.random.default_rng(0), [f"L0H{number}" for number in range(30)]
    masks = rng.random((2000, 30)) < 0.4
    one, two, three, four, five, six, seven = masks[:, :7].T
    sums = -0.3 * one - 0.2 * two - 0.2 * three - 0.1 * five - 0.1 * six + rng.normal(0, 0.1, 2000)
    together = sums - 0.4 * (three & four) - 0.5 * (one & five & six & seven)
    found = interactions(masks, together, lasso(), names, seed=0)
    assert {line.heads for line in found.found} == {
        ("L0H2", "L0H3"), ("L0H0", "L0H4", "L0H5", "L0H6"),
    }  # fmt: skip
    assert [line.effect for line in found.found] == pytest.approx([-0.5, -0.4], abs=0.05)
    assert found.explained > found.additive + 0.1
    assert found.explained == pytest.approx(1 - 0.01 / together.var(), abs=0.02)
    assert interactions(masks, sums, lasso(), names, seed=0).found == ()
    with pytest.raises(BadInput, match="ablated together"):
        interactions(np.eye(30, dtype=bool), sums[:30], lasso(), names, seed=0)
