"""(matrix, responses) -> effects: recoveries by name, and checks of their estimators.

A recovery is a scikit-learn regressor: `fit(masks, responses)`, then `coef_`, `intercept_` and
`predict`. The names do not load scikit-learn, an estimator does. No torch, no SQLite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput, UnknownName, first_line, require_known
from broca.measurement import Bools, Floats
from broca.plugins import Plugins


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The record of a recovery.

    Attributes:
        name: Value of `recovery`.
        help: Description of the regression for the help and the docs.
        make: Makes the estimator; takes no arguments.
    """

    name: str
    help: str
    make: Callable[[], Any]


def _shipped(name: str, text: str) -> Recovery:
    def make() -> Any:
        from broca.recovery import regressions  # takes a second: it loads scikit-learn

        return regressions.shipped(name)

    return Recovery(name=name, help=text, make=make)


RECOVERIES = Plugins(
    Recovery,
    _shipped("lasso", "the paper's: standardized responses, penalty 0.01"),
    _shipped("lasso-cv", "Lasso, penalty by five-fold cross-validation"),
    _shipped("omp", "orthogonal matching pursuit, number of components by cross-validation"),
    _shipped("elastic-net", "elastic net, penalty and its kind by cross-validation"),
    _shipped("ridge", "ridge, penalty by leave-one-out; then the threshold"),
    _shipped("bayesian", "Bayesian ridge; then the threshold"),
    _shipped("ard", "automatic relevance determination; then the threshold"),
    _shipped("non-positive", "Lasso with coefficients of 0 or below, penalty by cross-validation"),
    group="broca.recoveries",
)
"""Recoveries by name, the value of `recovery`."""


def make_recovery(recovery: Any, *, baseline: bool = False) -> Any:
    """Makes an unfitted estimator from a name or from any scikit-learn regressor.

    Args:
        recovery: A key of `RECOVERIES`, or an estimator with `fit`, `predict` and, once fitted,
            `coef_`; it is copied.
        baseline: Whether the intercept is fixed at the response of the intact model.

    Raises:
        UnknownName: No recovery has this name.
        BadInput: It is no estimator, or has no fixed intercept.
    """
    name = recovery_name(recovery)
    if isinstance(recovery, str):
        require_known("recovery", recovery, RECOVERIES, error=UnknownName)
    from sklearn.base import clone

    try:
        estimator = clone(RECOVERIES[recovery].make() if isinstance(recovery, str) else recovery)
    except Exception as error:  # that of others may raise anything
        raise BadInput(f"recovery {name} is no regressor: {first_line(error)}") from error
    if not hasattr(estimator, "predict"):
        raise BadInput(f"recovery {name} is no regressor: it has no `predict`")
    if baseline and "baseline" not in estimator.get_params():
        raise BadInput(f"recovery {name} has no fixed intercept: use intercept=fitted")
    return estimator


def recovery_name(recovery: Any) -> str:
    """Returns the name of a recovery in records; of other estimators their representation."""
    return recovery if isinstance(recovery, str) else " ".join(repr(recovery).split())


def coefficients(recovery: Any, masks: Bools, responses: Floats, *, name: str) -> Floats:
    """Fits a recovery, and returns the coefficient of each component.

    Raises:
        BadInput: The fit fails, or gives not one finite coefficient for each component.
    """
    components = masks.shape[1]
    try:
        recovery.fit(masks, responses)
    except Exception as error:  # an estimator of others may raise anything
        raise BadInput(f"recovery {name} failed: {first_line(error)}: use another") from error
    effects = np.asarray(getattr(recovery, "coef_", ()), dtype=float).ravel()
    if len(effects) != components or not np.isfinite(effects).all():
        raise BadInput(
            f"recovery {name} gave no finite coefficients (coef_) of the {components} components: "
            "use another recovery"
        )
    return effects
