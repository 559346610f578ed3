"""Findings of a matrix of effects: universal components, selections, clusters."""

from broca.atlases.clusters import Clustering, cluster
from broca.atlases.findings import Findings, find, keep_to_groups
from broca.atlases.groups import GroupCount, count_groups
from broca.atlases.selecting import Contrast, contrasts

__all__ = [
    "Clustering",
    "Contrast",
    "Findings",
    "GroupCount",
    "cluster",
    "contrasts",
    "count_groups",
    "find",
    "keep_to_groups",
]
