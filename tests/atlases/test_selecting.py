"""Universal components and components of single tasks."""

import numpy as np
from effect_matrices import effects_of, matrix

from broca.atlases import contrasts


def test_the_same_capability_is_no_control():
    """A component of both sums tasks is selected for both; a universal component for none."""
    cells = {(0, 4): -0.3, (1, 4): -0.3} | {(task, 7): -0.5 for task in range(5)}
    task_contrasts = contrasts(matrix(effects_of(cells)), 5)
    assert [contrast.selected for contrast in task_contrasts] == [(4,), (4,), (), (), ()]
    assert set(task_contrasts[0].controls) == {2, 3, 4}
    assert task_contrasts[0].values[4] == -0.3
    assert abs(task_contrasts[0].values[7]) < 1e-12


def test_at_most_k_and_the_largest_contrast_first():
    """The largest contrast comes first even if other components hurt the task more."""
    cells = {(2, 1): -0.2, (2, 2): -0.4, (2, 3): -0.3} | {(task, 5): -0.6 for task in range(5)}
    contrast = contrasts(matrix(effects_of(cells)), 2)[2]
    assert contrast.selected == (2, 3)
    assert contrast.low[2] < -0.4 < contrast.high[2] < 0


def test_what_helps_the_others_is_not_needed_by_the_task():
    """A component with a contrast but without harm to the task is not selected."""
    cells = {(task, 6): 0.3 for task in range(5) if task != 2}
    assert contrasts(matrix(effects_of(cells)), 5)[2].selected == ()


def test_noise_selects_nothing():
    """Of 400 components with effects as large as their spread none is selected to reach k."""
    rng = np.random.default_rng(3)
    noisy = matrix(rng.normal(0, 0.04, (5, 400)), spread=0.04)
    assert sum(len(contrast.selected) for contrast in contrasts(noisy, 5)) <= 1
    assert noisy.hurts.sum() > 20  # a test of every component alone would select these


def test_one_capability_alone_is_compared_with_nothing():
    """Without another capability there are no controls, and the effect alone decides."""
    task_contrasts = contrasts(matrix(effects_of({(0, 1): -0.3}), capabilities=("sums",) * 5), 5)
    assert task_contrasts[0].controls == ()
    assert task_contrasts[0].selected == (1,)
