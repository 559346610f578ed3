"""The record of a recovery, and checks of its estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from broca.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The record of a recovery. To add a recovery, add a file that defines its record.

    Attributes:
        name: Value of `recovery`.
        help: Description of the regression for the menu and the docs.
        make: Makes the estimator; takes no arguments.
        order: Place on the menu; equal places are ordered by name.
    """

    name: str
    help: str
    make: Callable[[], Any]
    order: int = 100


class Regression:
    """A linear regression with the interface of scikit-learn, the base class of recoveries.

    It replaces scikit-learn's base classes because their import takes a second and the list of
    recoveries does not need them. `clone`, cross-validation and pipelines accept it.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`; exactly 0 without evidence.
        intercept_: Fitted response of the intact model.
    """

    _estimator_type = "regressor"  # scikit-learn before 1.6 reads this
    coef_: NDArray[np.float64]
    intercept_: float

    def fit(self, masks: ArrayLike, responses: ArrayLike) -> Self:
        """Fits the coefficients.

        Args:
            masks: 1 where a component was ablated, `(masks, components)`.
            responses: Mean response under each mask, `(masks,)`; or the response of each row.
        """
        self.estimate(np.asarray(masks, dtype=float), np.asarray(responses, dtype=float))
        return self

    def estimate(self, matrix: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Sets `coef_` and `intercept_`; `fit` calls it with its masks and responses as numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no `estimate`")

    def predict(self, masks: ArrayLike) -> NDArray[np.float64]:
        """Predicts the response under each mask, `(masks,)`."""
        predicted: NDArray[np.float64] = (
            np.asarray(masks, dtype=float) @ self.coef_ + self.intercept_
        )
        return predicted

    def score(self, masks: ArrayLike, responses: ArrayLike) -> float:
        """Returns the explained share of the variance of the responses."""
        from sklearn.metrics import r2_score

        return float(r2_score(responses, self.predict(masks)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the constructor's arguments; with those of inner estimators if `deep`."""
        params = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        inner = {
            f"{name}__{key}": value
            for name, estimator in params.items()
            if deep and hasattr(estimator, "get_params")
            for key, value in estimator.get_params().items()
        }
        return params | inner

    def set_params(self, **params: Any) -> Self:
        """Sets arguments of the constructor; `inner__alpha` sets one of an inner estimator.

        Raises:
            ValueError: The constructor has no argument of this name.
        """
        for name, value in params.items():
            outer, _, key = name.partition("__")
            if name not in self.get_params():
                raise ValueError(f"{type(self).__name__} has no parameter '{name}'")
            if key:
                getattr(self, outer).set_params(**{key: value})
            else:
                setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator, RegressorMixin

        return type("Tagged", (RegressorMixin, BaseEstimator), {})().__sklearn_tags__()

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def require_fitting(recovery: Any, *, name: str, baseline: bool) -> None:
    """Checks a recovery before any measurement.

    Args:
        recovery: An unfitted estimator.
        name: Name of the recovery in messages.
        baseline: Whether the intercept is fixed at the response of the intact model.

    Raises:
        BadInput: The estimator lacks something; the message names it.
    """
    if inspect.isclass(recovery):
        raise BadInput(f"recovery {name} is a class: give an object, {name}()")
    missing = [part for part in ("fit", "predict", "get_params") if not hasattr(recovery, part)]
    if missing:
        raise BadInput(
            f"recovery {name} is not a scikit-learn regressor: it lacks {', '.join(missing)}; give "
            "an estimator with fit, predict and coef_"
        )
    if baseline and "baseline" not in recovery.get_params():
        raise BadInput(
            f"recovery {name} is not compatible with intercept=baseline: it has no parameter "
            "'baseline'; use intercept=fitted or recovery=lasso"
        )


def coefficients(fitted: Any, components: int, *, name: str) -> NDArray[np.float64]:
    """Returns the coefficient of each component from a fitted recovery.

    Raises:
        BadInput: There are no coefficients, or their number differs from the number of components.
    """
    if not hasattr(fitted, "coef_"):
        raise BadInput(
            f"recovery {name} is not compatible with a ranking: after its fit it has no coef_; "
            "use a linear estimator"
        )
    effects = np.asarray(fitted.coef_, dtype=float).ravel()
    if len(effects) != components or not np.isfinite(effects).all():
        raise BadInput(
            f"recovery {name} gave {len(effects)} coefficients for {components} components, or "
            "some that are not finite numbers: use another recovery"
        )
    return effects
