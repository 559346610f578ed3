"""The recovery of the compressed-sensing paper: a Lasso on standardized responses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression


class PaperLasso(Regression):
    """Lasso of the standardized responses on the unscaled 0/1 matrix.

    The coefficients have the units of the responses. A coefficient of exactly zero means that the
    responses can be explained without the component: it is no evidence against an effect.

    Args:
        alpha: Penalty, on the scale of standardized responses.
        max_iter: Maximum number of passes of coordinate descent.
        baseline: Response of the intact model. If given, the intercept is fixed at this value, as
            in eq. (1) of the paper; else the intercept is fitted, as in the released code.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`; negative if ablation lowers the
            response.
        intercept_: Fitted response of the intact model.

    Source: Bair et al., arXiv 2603.03335, section 4.1 and released code.
    """

    def __init__(
        self, alpha: float = 0.01, max_iter: int = 5000, baseline: float | None = None
    ) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.baseline = baseline

    def estimate(self, matrix: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Fits the coefficients."""
        from sklearn.linear_model import Lasso

        spread = y.std()
        if spread == 0:  # all responses are equal: no component is needed to explain them
            self.coef_ = np.zeros(matrix.shape[1])
            self.intercept_ = float(y[0]) if self.baseline is None else self.baseline
            return
        center = y.mean() if self.baseline is None else self.baseline
        inner = Lasso(
            alpha=self.alpha, max_iter=self.max_iter, fit_intercept=self.baseline is None
        ).fit(matrix, (y - center) / spread)
        self.coef_ = inner.coef_ * spread
        self.intercept_ = float(center + inner.intercept_ * spread)


RECOVERY = Recovery(
    name="lasso",
    help="the paper's: standardized responses, penalty 0.01",
    make=PaperLasso,
    order=1,
)
