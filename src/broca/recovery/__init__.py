"""(matrix, responses) -> effects: scikit-learn estimators. No torch, no SQLite.

Every recovery is a regressor with the scikit-learn interface: `fit(masks, responses)`, then
`coef_`. Any other scikit-learn regressor with `coef_` can be passed in its place.
"""

from broca.recovery.joint import JointEffects, highest, interval, joint_effects
from broca.recovery.lasso import PaperLasso
from broca.recovery.nonpositive import NonPositiveLasso
from broca.recovery.pairwise import PairwiseModel

RECOVERIES = {"lasso": PaperLasso}
"""Recoveries by name, as classes with defaults for every parameter."""

__all__ = [
    "JointEffects",
    "NonPositiveLasso",
    "PairwiseModel",
    "RECOVERIES",
    "PaperLasso",
    "highest",
    "interval",
    "joint_effects",
]
