"""A planted problem answers as its true effects say."""

from dataclasses import replace

import numpy as np

from broca.measurement import Plan
from broca.testing import planted_problem


def test_a_planted_problem_answers_as_its_effects_say():
    """Responses lose the effects of ablated components, and repeat for a repeated row."""
    planted = planted_problem(components=12, planted=3, effect=0.5, noise=0.02, seed=1)
    assert {*np.argsort(planted.effects)[:3].tolist()} == {*planted.planted}
    masks = np.random.default_rng(0).random((20, 12)) < 0.3
    expected = np.array([max(1 + planted.effects[mask].sum(), 0) for mask in masks])
    plan = replace(Plan.crossed(masks, np.arange(400)), gradients=True)
    measured = planted.run(plan)
    np.testing.assert_allclose(measured.mask_means(), expected, atol=0.005)
    np.testing.assert_array_equal(planted.run(plan).responses, measured.responses)
    slopes = planted.gradients(masks)
    np.testing.assert_array_equal(slopes, np.outer(expected > 0, -planted.effects))
    np.testing.assert_allclose(measured.slopes(), slopes[plan.mask_index], rtol=1e-6)
    half = (planted.means(masks, 0.5) - 1)[expected > 0]
    np.testing.assert_allclose(half, (expected - 1)[expected > 0] / 2)
