"""The search for the best five heads of a shipped task."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def ceiling(script):
    """The script `benchmarks/ceiling.py` as a module."""
    return script("ceiling")


def test_others_count_by_item(ceiling):
    """A specific drop is a task's mean loss minus the mean loss over all items of the others."""
    judge = ceiling.Judge.__new__(ceiling.Judge)
    losses = [np.array([[1.0, 0.0]]), np.array([[1.0, 1.0, 0.0]]), np.array([[0.0]])]
    judge.search_losses = lambda sets, task, items: losses
    assert judge.specific([frozenset({0})], 0, 2) == pytest.approx([0.0])


def test_the_search_finds_a_pair_that_only_works_together(ceiling):
    """The search finds a pair of which one head has little effect alone and the other none."""
    pair = frozenset({2, 5})

    class KnownDrops:
        components = range(9)

        def specific(self, sets, task, items):
            assert frozenset() not in sets
            return np.array(
                [0.4 * (pair <= members) + 0.02 * (2 in members) - 0.01 * len(members)
                 for members in sets]
            )  # fmt: skip

    assert ceiling.search(KnownDrops(), set())[0] == pair
    assert ceiling.search(KnownDrops(), {pair, frozenset({1, 3})})[0] == pair
