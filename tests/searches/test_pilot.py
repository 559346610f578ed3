"""The pilot finds the most informative size of masks."""

import numpy as np
from task_problems import searched

from broca.measurement import Measurement, Plan
from broca.searches.pilot import MOST_MASKS, SHARES, growing_size, pilot


def piloted(respond, components, *, masks):
    """Returns the size and the drops of a pilot on three items, and the rows of its plans."""

    def drops(masks):
        return (yield Plan.crossed(masks, np.arange(3))).responses.reshape(-1, 3)

    rounds = pilot(drops, components, masks=masks, rng=np.random.default_rng(0), intact=1.0)
    (size, lost), plans = searched(rounds, lambda plan: Measurement(plan, respond(plan)))
    return size, lost, [len(plan) for plan in plans]


def test_finds_the_share_that_leaves_tasks_undecided():
    """If a fifth of the components costs nearly a third of the score, a fifth is chosen."""

    def respond(plan):
        sizes = plan.masks.sum(axis=1)[plan.mask_index]
        return np.select([sizes < 20, sizes == 20], [0.0, 0.3], 0.9)

    size, drops, rows = piloted(respond, 100, masks=30)
    assert size == 20
    assert drops[20].shape == (MOST_MASKS, 3)
    assert rows == [3 * MOST_MASKS] * len(SHARES)
    size, _, rows = piloted(lambda plan: np.zeros(len(plan)), 4, masks=3)
    assert (size, rows) == (1, [9])  # shares that round to the same size are measured once


def test_largest_size_is_chosen_if_no_size_costs_anything():
    """Noise around zero does not choose a small size, and losses that grow choose as before."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        lost = {size: rng.normal(0, 0.01, 16) for size in (1, 4, 8, 12)}
        lost[12] = lost[12] - lost[12].mean() - 0.01  # the largest size seems to lose least
        assert growing_size(lost, 1.0) == 12
    assert growing_size({1: np.zeros(4), 5: np.full(4, 0.3), 9: np.full(4, 0.9)}, 1.0) == 5
    assert growing_size({1: np.full(4, 0.6), 5: np.full(4, 0.8)}, 1.0) == 1
