"""The search for the best five heads of a shipped task."""

import numpy as np
import pytest


def test_others_count_by_item_and_a_pair_that_only_works_together_is_found(script):
    """A specific drop is a task's mean loss minus that of all items of the others.

    The search finds a pair of which one head has little effect alone and the other none.
    """
    pair, ceiling = frozenset({2, 5}), script("ceiling")

    class KnownLosses(ceiling.Judge):
        components = range(9)

        def __init__(self):
            pass

        def search_losses(self, sets, task, items):
            own = [[0.8 * (pair <= members) + 0.04 * (2 in members), 0.0] for members in sets]
            others = [[0.03 * len(members)] for members in sets]
            return [np.array(own), np.array(others), np.zeros((len(sets), 2))]

    judge = KnownLosses()
    assert judge.specific([pair, frozenset({0})], 0, 2) == pytest.approx([0.40, -0.01])
    assert ceiling.search(judge, set())[0] == pair
