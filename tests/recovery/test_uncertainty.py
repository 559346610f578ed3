"""Intervals, p-values and false discoveries, against truth and against least squares."""

import numpy as np
import pytest
from scipy import stats

from broca import designs
from broca.recovery import DISCOVERY, PaperLasso, estimate, uncertainty


def simulated(seed, *, masks=150, components=60, planted=4, noise=0.1):
    """Random masks, responses and true effects."""
    rng = np.random.default_rng(seed)
    design = designs.stratified(masks, components, sparsity=0.05, seed=seed)
    effects = np.zeros(components)
    effects[rng.choice(components, planted, replace=False)] = -np.linspace(0.3, 0.15, planted)
    return design, 1 + design @ effects + rng.normal(0, noise, masks), effects


def lasso_uncertainty(design, y, *, k=5, seed=0, resamples=30, alpha=0.01):
    """Returns the uncertainty of the paper's Lasso."""
    fitted = PaperLasso(alpha=alpha).fit(design, y)
    return uncertainty(design, y, fitted, k=k, seed=seed, resamples=resamples)


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
    assert result.estimates[column] == pytest.approx(solution[2])
    assert result.p_values[column] == pytest.approx(stats.t.cdf(solution[2] / error, 147))
    half = stats.t.ppf(0.95, 147) * error
    np.testing.assert_allclose(result.intervals[column], [solution[2] - half, solution[2] + half])
    np.testing.assert_allclose(result.q_values, stats.false_discovery_control(result.p_values))


def test_equal_responses_and_few_masks_are_no_evidence():
    """Equal responses or fewer than eight masks give no interval and p-values of one."""
    design, y, _ = simulated(0)
    for masks, responses in ((design, np.ones(150)), (design[:6], y[:6])):
        result = lasso_uncertainty(masks, responses)
        assert np.isnan(result.intervals).all()
        assert (result.p_values == 1).all()
    assert not lasso_uncertainty(design, np.ones(150)).frequency.any()


def test_a_column_that_is_never_ablated_has_no_interval():
    """A column that is never ablated has no interval and a p-value of one."""
    design, y, _ = simulated(1)
    design[:, 7] = False
    result = lasso_uncertainty(design, y)
    assert np.isnan(result.intervals[7]).all()
    assert result.p_values[7] == 1


def test_same_seed_same_frequencies():
    """The same seed gives the same resamples and another seed gives others."""
    design, y, _ = simulated(2, noise=0.3)
    first, again, other = (lasso_uncertainty(design, y, seed=s).frequency for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_within_strata_it_is_least_squares_with_a_level_for_each():
    """The fit equals least squares with dummy variables; a single stratum changes nothing."""
    design, y, _ = simulated(5, planted=0)
    strata = np.arange(150) % 3
    y = y + 0.5 * strata
    result = estimate(design, y, strata)
    matrix = np.column_stack([*(strata == number for number in range(3)), design[:, 7]])
    solution, (squares,), _, _ = np.linalg.lstsq(matrix.astype(float), y, rcond=None)
    error = np.sqrt(squares / 146 * np.linalg.inv(matrix.T.astype(float) @ matrix)[3, 3])
    assert result.estimates[7] == pytest.approx(solution[3])
    assert result.p_values[7] == pytest.approx(stats.t.cdf(solution[3] / error, 146))
    for same in (None, np.full(150, 4)):
        np.testing.assert_array_equal(
            estimate(design, y, same).p_values, lasso_uncertainty(design, y).p_values
        )


def test_no_component_takes_the_blame_for_the_size_of_masks():
    """Mask sizes differ and components have costs: components without effect are no discoveries.

    Without strata they are discoveries, because they are more often in large masks.
    """
    false = {"alike": 0, "all": 0}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(3, 30, 600)
        masks = np.stack([rng.permutation(60) < size for size in sizes])
        effects = np.where(np.arange(60) < 30, -0.03, 0.0)
        y = 1 + masks @ effects + rng.normal(0, 0.1, 600)
        for name, strata in (("alike", sizes // 3), ("all", None)):
            discoveries = estimate(masks, y, strata).p_values[30:] < 0.05
            false[name] += int(discoveries.sum())
    assert false["alike"] <= 0.08 * 300
    assert false["all"] > 2 * false["alike"]


def test_equal_responses_of_a_stratum_are_no_evidence():
    """Rounding errors of a stratum's mean count as zero."""
    masks = np.random.default_rng(0).random((40, 6)) < 0.3
    result = estimate(masks, np.where(np.arange(40) < 20, 0.1, 0.7), np.arange(40) // 20)
    assert np.isnan(result.intervals).all()
    assert (result.p_values == 1).all()
