"""Joint effects: a ridge of all responses, intervals that cover, one bound for all components."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from broca.recovery.joint import highest, interval, joint_effects


def problem(rows, components, *, seed=0, responses=2, noise=0.3):
    """Random masks, true effects of few components, and noisy responses."""
    rng = np.random.default_rng(seed)
    masks = rng.random((rows, components)) < 0.2
    effects = np.zeros((responses, components))
    effects[:, :3] = -0.3
    effects[0, 3:6] = -0.2
    return masks, effects, masks @ effects.T + rng.normal(0, noise, (rows, len(effects)))


@pytest.mark.parametrize(("rows", "components"), [(200, 30), (40, 90)])
def test_equals_ridge_of_scikit_learn(rows, components):
    """Effects equal a ridge of each response alone, for more rows than components and for fewer."""
    masks, _, y = problem(rows, components)
    joint = joint_effects(masks, y, resamples=2, rng=np.random.default_rng(0))
    for number, effects in enumerate(joint.effects):
        alone = Ridge(alpha=joint.penalty, solver="svd").fit(masks.astype(float), y[:, number])
        np.testing.assert_allclose(effects, alone.coef_, atol=1e-9)


def test_explained_is_that_of_held_out_masks():
    """Explained variance equals scikit-learn's cross-validation with the best of the penalties.

    A weak penalty explains less than nothing of noise, and of small effects.
    """
    masks, _, y = problem(300, 60)
    y = np.column_stack([y, y[:, 1] + np.random.default_rng(5).normal(0, 0.7, 300)])
    joint = joint_effects(masks, y, resamples=1, rng=np.random.default_rng(3))
    folds = np.random.default_rng(3).permutation(300) % 5
    explained = []
    for penalty in (1, 3, 10, 30, 100, 300, 1000):
        ridge, cut = Ridge(alpha=penalty), PredefinedSplit(folds)
        missed = y - cross_val_predict(ridge, masks.astype(float), y, cv=cut)
        explained.append(1 - (missed**2).sum(0) / ((y - y.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(joint.explained, np.max(explained, axis=0), atol=1e-9)
    assert joint.penalty == 0.1
    assert explained[0][2] < 0.0 < 0.02 < joint.explained[2] < 0.2 < joint.explained[0]


def test_intervals_cover_the_truth():
    """About 90 % of the intervals of effects and of differences of responses cover the truth."""
    inside = []
    for seed in range(8):
        masks, truth, y = problem(300, 30, seed=seed)
        joint = joint_effects(masks, y, resamples=80, rng=np.random.default_rng(seed))
        differences = [np.diff(of, axis=-2) for of in (joint.effects, joint.resampled, truth)]
        for values, resampled, true in ((joint.effects, joint.resampled, truth), differences):
            low, high = interval(values, resampled)
            inside.append(((low <= true) & (true <= high)).mean())
    assert 0.84 <= np.mean(inside) <= 0.96


def test_one_bound_for_all_components():
    """Strong effects are below the bound; components without effect are in few repetitions."""
    false = 0
    for seed in range(20):
        masks, truth, y = problem(300, 40, seed=seed, responses=1)
        joint = joint_effects(masks, y, resamples=60, rng=np.random.default_rng(seed))
        sure = highest(joint.effects, joint.resampled)[0] < 0
        assert sure[:3].all()
        false += bool(sure[truth[0] == 0].any())
    assert false <= 4


def test_few_masks_are_said():
    """With fewer than four masks for each component the effects are shrunk and marked as shrunk."""
    masks, _, y = problem(60, 40)
    joint = joint_effects(masks, y, resamples=2, rng=np.random.default_rng(0))
    assert joint.shrunk
    assert joint.penalty > 1
    assert np.abs(joint.effects[:, :3]).mean() < 0.3
    masks, _, y = problem(160, 40)
    assert not joint_effects(masks, y, resamples=2, rng=np.random.default_rng(0)).shrunk


def test_constant_responses_have_no_effect():
    """Constant responses have zero effects, no explained variance and no effect below the bound."""
    masks, _, _ = problem(100, 10)
    joint = joint_effects(masks, np.zeros((100, 2)), resamples=5, rng=np.random.default_rng(0))
    assert not joint.effects.any()
    assert not joint.explained.any()
    assert not (highest(joint.effects, joint.resampled) < 0).any()
