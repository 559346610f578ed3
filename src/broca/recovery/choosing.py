"""Recoveries by name."""

from __future__ import annotations

from typing import Any

from broca.errors import UnknownName, nearest
from broca.recovery.base import Recovery, require_fitting
from broca.recovery.menu import Menu

RECOVERIES = Menu(Recovery, package="broca.recovery", group="broca.recoveries")
"""Recoveries by name, the value of `recovery`."""


def make_recovery(recovery: Any, *, baseline: bool = False) -> Any:
    """Makes an unfitted estimator from a name or from any scikit-learn regressor.

    Args:
        recovery: A key of `RECOVERIES`, or an estimator with `fit`, `predict` and, once fitted,
            `coef_`; it is copied.
        baseline: Whether the intercept is fixed at the response of the intact model.

    Raises:
        UnknownName: No recovery has this name.
        BadInput: The estimator lacks something.
    """
    if isinstance(recovery, str):
        if recovery not in RECOVERIES:
            raise UnknownName(
                f"recovery '{recovery}' is unknown{nearest(recovery, RECOVERIES)}; use one of "
                f"{', '.join(RECOVERIES)}, or in Python any scikit-learn regressor with coef_"
            )
        estimator = RECOVERIES[recovery].make()
        require_fitting(estimator, name=recovery, baseline=baseline)
        return estimator
    require_fitting(recovery, name=recovery_name(recovery), baseline=baseline)
    from sklearn.base import clone

    return clone(recovery)


def recovery_name(recovery: Any) -> str:
    """Returns the name of a recovery in records; of other estimators their representation."""
    return recovery if isinstance(recovery, str) else " ".join(repr(recovery).split())
