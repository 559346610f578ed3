"""What a recovery is, and whether an estimator fits its use."""

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
    """All that is known of a recovery. To add one, add a file that defines its record.

    Attributes:
        name: The name that `recovery` takes.
        help: What the regression does, for the menu and the docs.
        make: Makes the estimator, without arguments.
        order: Its place on the menu; equal places are ordered by name.
    """

    name: str
    help: str
    make: Callable[[], Any]
    order: int = 100


class Regression:
    """A linear regression with the interface of scikit-learn: what the recoveries here share.

    It stands in for scikit-learn's base classes because their import takes a second, which the list
    of recoveries does not need. `clone`, cross-validation and pipelines take it as their own.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`; exactly 0 where there is no
            evidence.
        intercept_: Response that the fit gives the intact model.
    """

    _estimator_type = "regressor"  # what scikit-learn before 1.6 reads
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
        """Share of the variance of the responses that is explained."""
        from sklearn.metrics import r2_score

        return float(r2_score(responses, self.predict(masks)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor by name, with those of inner estimators if `deep`."""
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
            ValueError: There is no such argument.
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
    """Checks before anything is measured that a recovery can do its work.

    Args:
        recovery: An estimator that was not fitted.
        name: What to call it in messages.
        baseline: Whether its intercept is to be fixed at the intact model's response.

    Raises:
        BadInput: It lacks something; the message names it.
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
    """The coefficients of a fitted recovery, one for each component.

    Raises:
        BadInput: It has none, or not one for each component.
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
