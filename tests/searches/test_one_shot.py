"""One-shot ablates every component alone."""

import numpy as np
from searches.test_searches import ITEMS, solve

from broca.measurement import Plan
from broca.testing import planted_problem


def test_one_shot_effects_are_the_differences_of_means():
    """Effects equal the differences of a loop written out by hand."""
    planted = planted_problem(components=12, seed=6)
    ranking, spent = solve("one-shot", planted)
    masks = np.vstack([np.zeros((1, 12), dtype=bool), np.eye(12, dtype=bool)])
    means = [planted.run(Plan.crossed(mask[None], ITEMS)).responses.mean() for mask in masks]
    np.testing.assert_allclose(ranking.effects, np.array(means[1:]) - means[0])
    assert spent == 13 * 20
