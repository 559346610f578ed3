"""Key/value groups: the permutation test against exact counts."""

from itertools import permutations

import numpy as np
import pytest

from broca.atlases import count_groups

LAYERS = np.repeat([0, 1], 8)
GROUPS = np.tile(np.repeat([0, 1], 4), 2)


def test_heads_of_one_group_stand_out():
    """With four heads of one group in each layer, chance gives less than half of the pairs."""
    count = count_groups([[0, 1, 2, 3], [8, 9, 10, 11]], LAYERS, GROUPS, seed=0)
    assert count.pairs == 12
    assert count.effect > 3
    assert count.p < 0.01
    # 2 of 70 choices in each layer are a whole group
    assert count.p == pytest.approx((2 / 70) ** 2, abs=1e-3)


def test_expected_number_is_exact_in_the_mean():
    """Two of eight heads share a group of four with probability 3/7, never across layers."""
    count = count_groups([[0, 1], [2, 9], [8, 15]], LAYERS, GROUPS, seed=0, permutations=20000)
    assert count.pairs == 1
    assert count.expected == pytest.approx(2 * 3 / 7, abs=0.02)


def test_p_is_that_of_all_permutations():
    """The p-value of one layer of four heads equals that of all 24 permutations."""
    sets, groups = [[0, 1], [1, 2]], np.array([0, 0, 0, 1])
    counts = [
        sum(groups[order[a]] == groups[order[b]] for a, b in sets)
        for order in permutations(range(4))
    ]
    count = count_groups(sets, np.zeros(4, dtype=int), groups, seed=1, permutations=20000)
    real = sum(groups[a] == groups[b] for a, b in sets)
    assert count.p == pytest.approx(np.mean([pairs >= real for pairs in counts]), abs=0.02)
    assert count.expected == pytest.approx(np.mean(counts), abs=0.02)


def test_p_is_uniform_under_chance():
    """About 10 % of random sets, or fewer because counts have ties, have a p-value up to 0.1."""
    rng = np.random.default_rng(0)
    called = [
        count_groups(
            [rng.choice(16, 5, replace=False).tolist() for _ in range(3)],
            LAYERS, GROUPS, seed=seed, permutations=200,
        ).p <= 0.1
        for seed in range(100)
    ]  # fmt: skip
    assert np.mean(called) <= 0.17


def test_one_head_in_each_layer_says_nothing():
    """No permutation changes the count, so there is no effect and the p-value is 1."""
    count = count_groups([[0, 8]], LAYERS, GROUPS, seed=0)
    assert (count.pairs, count.expected, count.effect, count.p) == (0, 0.0, None, 1.0)
