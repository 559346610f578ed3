"""What a recovery is, and whether one fits what it is to be used for."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from broca.errors import BadInput


class Recovery(Protocol):
    """A regression of responses on masks, with the interface of scikit-learn.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`; exactly 0 where there is no
            evidence.
        intercept_: Response that the fit gives the intact model.
    """

    coef_: NDArray[np.float64]
    intercept_: float

    def fit(self, masks: ArrayLike, responses: ArrayLike) -> Self:
        """Fits responses `(masks,)` to masks `(masks, components)`."""

    def predict(self, masks: ArrayLike) -> NDArray[np.float64]:
        """Predicts the response under each mask, `(masks,)`."""


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
            f"recovery {name} is no scikit-learn regressor: it lacks {', '.join(missing)}; give an "
            "estimator with fit, predict and coef_"
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
    found = np.asarray(fitted.coef_, dtype=float).ravel()
    if len(found) != components or not np.isfinite(found).all():
        raise BadInput(
            f"recovery {name} gave {len(found)} coefficients for {components} components, or some "
            "that are no finite numbers: use another recovery"
        )
    return found
