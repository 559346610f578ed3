"""Comparisons of models and runs on the same masks and items."""

from broca.comparisons.collecting import Collection
from broca.comparisons.estimating import Estimates, discoveries, estimate, row_count
from broca.comparisons.judging import carries, scores
from broca.comparisons.measuring import Design, Measured, draw_design, measure
from broca.comparisons.subjects import (
    Compared,
    Subject,
    seed_of,
    selections_of,
    subjects_of,
    tasks_of,
)

__all__ = [
    "Collection",
    "Compared",
    "Design",
    "Estimates",
    "Measured",
    "Subject",
    "carries",
    "discoveries",
    "draw_design",
    "estimate",
    "measure",
    "row_count",
    "scores",
    "seed_of",
    "selections_of",
    "subjects_of",
    "tasks_of",
]
