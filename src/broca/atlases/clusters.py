"""Hierarchical clustering of rows by the direction of their profiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist

APART = 0.5
"""Mean cosine distance above which clusters are not joined: an angle of 60 degrees."""


@dataclass(frozen=True)
class Clustering:
    """An order of rows in which similar rows are neighbours.

    Attributes:
        order: The rows with a profile, similar rows beside each other.
        clusters: These rows in clusters, in the same order.
    """

    order: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...]


def cluster(profiles: NDArray[np.float64]) -> Clustering:
    """Clusters rows by the direction of their profiles, regardless of their length.

    It uses average linkage of cosine distances, with optimal ordering of the leaves.

    Args:
        profiles: Profiles, `(rows, features)`; rows of zeros have no profile and are left out.
    """
    rows = np.flatnonzero(np.linalg.norm(profiles, axis=1) > 0)
    if len(rows) < 2:
        alone = tuple(int(row) for row in rows)
        return Clustering(alone, tuple((row,) for row in alone))
    # the distance of equal directions may be slightly negative by rounding
    distances = np.maximum(pdist(profiles[rows], "cosine"), 0.0)
    tree = linkage(distances, "average", optimal_ordering=True)
    leaves = leaves_list(tree)
    labels = fcluster(tree, APART, "distance")
    clusters: dict[int, list[int]] = {}
    for leaf in leaves.tolist():
        clusters.setdefault(int(labels[leaf]), []).append(int(rows[leaf]))
    order = tuple(int(row) for row in rows[leaves])
    return Clustering(order, tuple(tuple(members) for members in clusters.values()))
