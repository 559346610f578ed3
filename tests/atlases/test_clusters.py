"""Profiles are clustered by direction, not by length."""

import numpy as np

from broca.atlases import cluster
from broca.atlases.clusters import APART


def test_profiles_of_one_direction_are_together():
    """Profiles of one direction form a cluster, whatever their length and order."""
    profiles = np.array(
        [[0, -1, 0], [-1, 0, 0], [0, -0.1, 0.01], [-9, 0.1, 0], [0, 0, -1], [0, -5, 0.2]]
    )
    clustering = cluster(profiles)
    assert {frozenset(members) for members in clustering.clusters} == {
        frozenset({0, 2, 5}), frozenset({1, 3}), frozenset({4}),
    }  # fmt: skip
    assert [row for members in clustering.clusters for row in members] == list(clustering.order)


def test_members_of_a_cluster_are_closer_than_the_cut():
    """The mean cosine distance of every cluster of random directions is at most `APART`."""
    rng = np.random.default_rng(0)
    profiles = rng.normal(size=(30, 3))
    unit = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    clustering = cluster(profiles)
    assert sorted(clustering.order) == list(range(30))
    for members in clustering.clusters:
        near = unit[list(members)] @ unit[list(members)].T
        assert near.min() > 0  # no pair of a cluster points in opposite directions
        pairs = np.triu_indices(len(members), 1)
        assert (1 - near[pairs]).sum() <= APART * len(pairs[0]) + 1e-12


def test_rows_without_a_profile_are_left_out():
    """Rows without a profile belong to no cluster; a single row with a profile is one."""
    assert cluster(np.zeros((3, 2))).order == ()
    assert cluster(np.zeros((3, 0))).clusters == ()
    assert cluster(np.array([[0, 0], [0, -1.0], [0, 0]])).clusters == ((1,),)
    assert cluster(np.array([[0, 0], [0, -1.0], [0, -2.0]])).clusters == ((1, 2),)
