"""Sparse Bayesian linear regression: draws of which coefficients are real, and how large."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]

_CHAINS = 32
"""Chains that are drawn side by side."""
_WARMING = 15
"""Sweeps before the first draw that counts."""
_AGAIN = 2
"""The same where chains go on with some more rows."""
_KEPT = 6
"""Sweeps whose draws count, those of every chain."""
_LEAST_NOISE = 0.02
"""Standard deviation of a row that is assumed even where rows agree."""
_WIDTHS = np.array([1e-9, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
"""Standard deviations of effects: the first stands for nothing."""
_PRIOR = np.array([2.0, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
"""How many effects of each width are imagined beside those of a kind: a Dirichlet prior."""


@cache
def _blas() -> ThreadpoolController:
    """Holds BLAS to one thread where matrices are so small that threads wait for each other."""
    import scipy.linalg.blas  # noqa: F401  # the controller sees libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class Evidence:
    """What rows with equal noise say of coefficients: sums over rows.

    Attributes:
        gram: Products of features, `(features, features)`.
        moments: Products of features and responses, `(features,)`.
        squares: Sum of squared responses.
        rows: Number of rows.
        design_effect: How many rows count as one, since rows on one item say the same of it: 1
            where no item repeats (Kish 1965, "Survey Sampling").
    """

    gram: Floats
    moments: Floats
    squares: float
    rows: int
    design_effect: float

    @classmethod
    def of(cls, described: Floats, responses: Floats, items: NDArray[np.intp], mains: int) -> Self:
        """What rows say.

        Args:
            described: Features of each row, `(rows, features)`.
            responses: `(rows,)`.
            items: The item of each row, `(rows,)`.
            mains: How many of the first features tell the design effect.
        """
        gram = described.T @ described
        ridge = np.eye(mains) * max(1.0, 0.01 * len(responses))
        alone = described[:, :mains]
        centered = alone - alone.mean(axis=0)
        least = np.linalg.solve(centered.T @ centered + ridge, centered.T @ responses)
        left = responses - responses.mean() - centered @ least
        scores = centered * left[:, None]
        _, place = np.unique(items, return_inverse=True)
        sums = np.zeros((int(place.max()) + 1, mains))
        np.add.at(sums, place, scores)
        together, apart = np.square(sums).sum(), np.square(scores).sum()
        effect = float(together / apart) if apart > 0 else 1.0
        return cls(
            gram,
            described.T @ responses,
            float(responses @ responses),
            len(responses),
            max(1.0, effect),
        )

    def residual(self, coefficients: Floats) -> float:
        """Sum of squares that coefficients leave unexplained."""
        explained = coefficients @ (2 * self.moments - self.gram @ coefficients)
        return max(0.0, self.squares - float(explained))


@dataclass
class Posterior:
    """Draws of coefficients that are nothing or normal around zero, by Gibbs sampling.

    Every coefficient is nothing or of one of several widths, and how common these are among
    coefficients of its kind is drawn too: where most effects are nothing a weak one is taken for
    noise, where many effects are weak it is believed (BayesR: Erbe et al. 2012, Moser et al. 2015).

    Attributes:
        kinds: The kind of every coefficient, numbers from 0, `(features,)`.
        draws: `(draws, features)`.
        noise: Standard deviation of a row of each group, `(groups,)`.
    """

    kinds: NDArray[np.intp]
    draws: Floats = field(init=False)
    noise: Floats = field(init=False)

    def __post_init__(self) -> None:
        number = int(self.kinds.max()) + 1
        self.draws = np.zeros((0, len(self.kinds)))
        self.noise = np.zeros(0)
        self._last = np.zeros((_CHAINS, len(self.kinds)))
        self._part = np.zeros((_CHAINS, len(self.kinds)), dtype=np.intp)
        self._weights = np.full((_CHAINS, number, len(_PRIOR)), _PRIOR / _PRIOR.sum())

    def fit(self, evidence: list[Evidence], rng: np.random.Generator) -> None:
        """Draws coefficients given what rows say; goes on from the last draws.

        Args:
            evidence: Of each group of rows.
            rng: Draws.
        """
        if len(self.noise) != len(evidence):
            spread = [each.squares / each.rows for each in evidence]
            self.noise = np.sqrt(np.maximum(spread, _LEAST_NOISE**2))
        effects = np.array([each.design_effect for each in evidence])
        grams = np.array([each.gram for each in evidence])
        moments = np.array([each.moments for each in evidence])
        kept = []
        warming = _AGAIN if len(self.draws) else _WARMING
        with _blas().limit(limits=1, user_api="blas"):
            for sweep in range(warming + _KEPT):
                weights = 1 / (self.noise**2 * effects)
                self._sweep(np.tensordot(weights, grams, 1), weights @ moments, rng)
                self._draw_weights(rng)
                if sweep < warming:
                    self._estimate_noise(evidence)
                if sweep >= warming:
                    kept.append(self._last.copy())
        self.draws = np.concatenate(kept)

    def _sweep(self, gram: Floats, moments: Floats, rng: np.random.Generator) -> None:
        """Draws each coefficient of each chain given the others."""
        from scipy.linalg.blas import dger

        last = self._last.T.copy()  # `(features, chains)`: a coefficient of all chains is one row
        left = np.ascontiguousarray(moments[:, None] - gram @ last)
        precision = np.diagonal(gram)
        variance = 1 / (precision[:, None] + 1 / np.square(_WIDTHS))  # `(features, parts)`
        score = np.log(self._weights[:, self.kinds]).transpose(1, 2, 0)
        score += np.log(variance / np.square(_WIDTHS))[:, :, None] / 2
        score += rng.gumbel(size=score.shape)
        half = variance[:, :, None] / 2
        variance[:, 0] = 0.0  # nothing is exactly nothing
        spread = np.sqrt(variance)
        normal = rng.normal(size=last.shape)
        part = np.empty(last.shape, dtype=np.intp)
        for j in rng.permutation(len(last)).tolist():
            before = last[j]
            alone = left[j] + precision[j] * before
            part[j] = chosen = (score[j] + half[j] * (alone * alone)).argmax(axis=0)
            new = variance[j][chosen] * alone + spread[j][chosen] * normal[j]
            change = new - before
            if change.any():
                dger(-1.0, change, gram[j], a=left.T, overwrite_a=1)  # left -= gram[j] x change
                last[j] = new
        self._last, self._part = last.T.copy(), part.T.copy()

    def _draw_weights(self, rng: np.random.Generator) -> None:
        """Draws, for each kind, how common nothing and each width are."""
        for kind in range(self._weights.shape[1]):
            mine = self._part[:, self.kinds == kind]
            counts = np.stack([(mine == part).sum(axis=1) for part in range(len(_PRIOR))], axis=1)
            drawn = rng.gamma(counts + _PRIOR)
            self._weights[:, kind] = np.maximum(drawn / drawn.sum(axis=1, keepdims=True), 1e-12)

    def _estimate_noise(self, evidence: list[Evidence]) -> None:
        """Estimates the noise of each group from what the chains leave unexplained."""
        left = [
            np.mean([each.residual(chain) for chain in self._last]) / each.rows for each in evidence
        ]
        self.noise = np.sqrt(np.maximum(left, _LEAST_NOISE**2))

    @property
    def mean(self) -> Floats:
        """Posterior means of the coefficients, `(features,)`."""
        mean: Floats = self.draws.mean(axis=0)
        return mean

    def variances(self, described: Floats) -> Floats:
        """Posterior variances of linear combinations, `(combinations, features)` -> vector."""
        variances: Floats = (self.draws @ described.T).var(axis=0)
        return variances
