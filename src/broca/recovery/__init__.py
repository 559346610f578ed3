"""(matrix, responses) -> effects: scikit-learn estimators. No torch, no SQLite.

A recovery is a scikit-learn regressor: `fit(masks, responses)`, then `coef_`, `intercept_` and
`predict`. The names do not load scikit-learn, an estimator does.
"""

from broca.recovery.joint import JointEffects, highest, interval, joint_effects
from broca.recovery.records import (
    RECOVERIES,
    Recovery,
    coefficients,
    make_recovery,
    recovery_name,
)
from broca.recovery.uncertainty import (
    DISCOVERY,
    RESAMPLES,
    Uncertainty,
    additivity,
    uncertainty,
)

__all__ = [
    "DISCOVERY",
    "RECOVERIES",
    "RESAMPLES",
    "JointEffects",
    "Recovery",
    "Uncertainty",
    "additivity",
    "coefficients",
    "highest",
    "interval",
    "joint_effects",
    "make_recovery",
    "recovery_name",
    "uncertainty",
]
