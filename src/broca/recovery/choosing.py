"""Recoveries by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from broca.errors import UnknownName, nearest
from broca.recovery.guarded import elastic_net, lasso_cv, matching_pursuit
from broca.recovery.lasso import PaperLasso
from broca.recovery.nonpositive import NonPositiveLasso
from broca.recovery.protocol import require_fitting
from broca.recovery.stability import StabilitySelection
from broca.recovery.thresholded import ard, bayesian, ridge

RECOVERIES: dict[str, Callable[[], Any]] = {
    "lasso": PaperLasso,
    "lasso-cv": lasso_cv,
    "omp": matching_pursuit,
    "elastic-net": elastic_net,
    "ridge": ridge,
    "bayesian": bayesian,
    "ard": ard,
    "stability": StabilitySelection,
    "non-positive": NonPositiveLasso,
}
"""Recoveries by the name that `--recovery` takes; each is made without arguments."""


def make_recovery(recovery: Any, *, baseline: bool = False) -> Any:
    """An estimator that was not fitted, from a name or from any scikit-learn regressor.

    Args:
        recovery: A key of `RECOVERIES`, or an estimator with `fit`, `predict` and, once fitted,
            `coef_`; it is copied.
        baseline: Whether its intercept is to be fixed at the intact model's response.

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
        made = RECOVERIES[recovery]()
    else:
        made = recovery
    require_fitting(made, name=recovery_name(recovery), baseline=baseline)
    return made if isinstance(recovery, str) else clone(made)


def recovery_name(recovery: Any) -> str:
    """What a record calls a recovery: its name, or how scikit-learn writes the estimator."""
    return recovery if isinstance(recovery, str) else " ".join(repr(recovery).split())
