"""(matrix, responses) -> effects: scikit-learn estimators. No torch, no SQLite.

Every recovery is a regressor with the scikit-learn interface: `fit(masks, responses)`, then
`coef_`, `intercept_` and `predict`. Any other scikit-learn regressor with `coef_` can be passed
instead. The files of this folder define the records of the recoveries; a fit loads scikit-learn and
SciPy.
"""

from broca.recovery.additivity import Additivity, additivity
from broca.recovery.base import Recovery, Regression, coefficients
from broca.recovery.choosing import RECOVERIES, make_recovery, recovery_name
from broca.recovery.guarded import Guarded
from broca.recovery.joint import JointEffects, highest, interval, joint_effects
from broca.recovery.lasso import PaperLasso
from broca.recovery.nonpositive import NonPositiveLasso
from broca.recovery.pairwise import PairwiseModel
from broca.recovery.stability import StabilitySelection
from broca.recovery.thresholded import Thresholded
from broca.recovery.uncertainty import DISCOVERY, Estimates, Uncertainty, estimate, uncertainty

__all__ = [
    "DISCOVERY",
    "RECOVERIES",
    "Additivity",
    "Estimates",
    "Guarded",
    "JointEffects",
    "NonPositiveLasso",
    "PairwiseModel",
    "PaperLasso",
    "Recovery",
    "Regression",
    "StabilitySelection",
    "Thresholded",
    "Uncertainty",
    "additivity",
    "coefficients",
    "estimate",
    "highest",
    "interval",
    "joint_effects",
    "make_recovery",
    "recovery_name",
    "uncertainty",
]
