"""Models and runs compared on the same masks and items."""

from broca.comparisons.estimating import Estimates, discoveries, estimate, row_count
from broca.comparisons.judging import carries, scores
from broca.comparisons.measuring import Design, Measured, draw_design, measure

__all__ = [
    "Design",
    "Estimates",
    "Measured",
    "carries",
    "discoveries",
    "draw_design",
    "estimate",
    "measure",
    "row_count",
    "scores",
]
