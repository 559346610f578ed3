"""Hierarchical clusters of rows by the direction of their profiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist

APART = 0.5
"""Mean cosine distance at which two clusters are not joined: profiles 60 degrees apart."""


@dataclass(frozen=True)
class Clustering:
    """An order of rows in which similar rows are neighbours.

    Attributes:
        order: The rows that have a profile, neighbours alike.
        clusters: The same rows cut into clusters, in that order.
    """

    order: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...]


def cluster(profiles: NDArray[np.float64]) -> Clustering:
    """Joins rows whose profiles point the same way, however long they are.

    Average linkage of cosine distances, leaves in the order that keeps neighbours closest.

    Args:
        profiles: `(rows, features)`; rows of zeros have no profile and are left out.
    """
    rows = np.flatnonzero(np.linalg.norm(profiles, axis=1) > 0)
    if len(rows) < 2:
        alone = tuple(int(row) for row in rows)
        return Clustering(alone, tuple((row,) for row in alone))
    # rounding may leave the distance of equal directions a little below zero
    distances = np.maximum(pdist(profiles[rows], "cosine"), 0.0)
    tree = linkage(distances, "average", optimal_ordering=True)
    leaves = leaves_list(tree)
    labels = fcluster(tree, APART, "distance")
    found: dict[int, list[int]] = {}
    for leaf in leaves.tolist():
        found.setdefault(int(labels[leaf]), []).append(int(rows[leaf]))
    order = tuple(int(row) for row in rows[leaves])
    return Clustering(order, tuple(tuple(members) for members in found.values()))
