"""Comparisons of models and runs on the same masks and items."""

from broca.comparisons.collection import Collection
from broca.comparisons.subjects import (
    Comparable,
    merged,
    seed_of,
    selections_of,
    subjects_of,
    tasks_of,
)

__all__ = [
    "Collection",
    "Comparable",
    "merged",
    "seed_of",
    "selections_of",
    "subjects_of",
    "tasks_of",
]
