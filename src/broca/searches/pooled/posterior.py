"""Sparse Bayesian linear regression: draws which coefficients are nonzero, and their values."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from broca.measurement import Floats, Ints

_CHAINS = 32
"""Number of parallel chains."""
_WARMING = 15
"""Number of burn-in sweeps."""
_AGAIN = 2
"""Number of burn-in sweeps when chains continue with more rows."""
_KEPT = 6
"""Number of sweeps of every chain whose draws are kept."""
_LEAST_NOISE = 0.02
"""Minimum standard deviation of a row, even if rows agree."""
_WIDTHS = np.array([1e-9, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
"""Standard deviations of effects; the first stands for no effect."""
_PRIOR = np.array([2.0, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
"""Prior counts of effects of each width: a Dirichlet prior."""


@dataclass(frozen=True)
class RowSums:
    """The sufficient statistics of rows with equal noise.

    Attributes:
        gram: Products of features, `(features, features)`.
        moments: Products of features and responses, `(features,)`.
        squares: Sum of squared responses.
        rows: Number of rows.
        design_effect: Number of rows that count as one because rows of the same item are
            correlated: 1 without repeated items (Kish 1965, "Survey Sampling").
    """

    gram: Floats
    moments: Floats
    squares: float
    rows: int
    design_effect: float

    @classmethod
    def of(cls, described: Floats, responses: Floats, items: Ints, mains: int) -> Self:
        """Computes the statistics of rows.

        Args:
            described: Features of each row, `(rows, features)`.
            responses: Responses, `(rows,)`.
            items: Item of each row, `(rows,)`.
            mains: Number of first features from which the design effect is estimated.
        """
        gram = described.T @ described
        ridge = np.eye(mains) * max(1.0, 0.01 * len(responses))
        alone = described[:, :mains]
        centered = alone - alone.mean(axis=0)
        least = np.linalg.solve(centered.T @ centered + ridge, centered.T @ responses)
        residuals = responses - responses.mean() - centered @ least
        scores = centered * residuals[:, None]
        _, place = np.unique(items, return_inverse=True)
        sums = np.zeros((int(place.max()) + 1, mains))
        np.add.at(sums, place, scores)
        together, apart = np.square(sums).sum(), np.square(scores).sum()
        effect = float(together / apart) if apart > 0 else 1.0
        products, squares = described.T @ responses, float(responses @ responses)
        return cls(gram, products, squares, len(responses), max(1.0, effect))

    def residual(self, coefficients: Floats) -> float:
        """Returns the residual sum of squares of coefficients."""
        explained = coefficients @ (2 * self.moments - self.gram @ coefficients)
        return max(0.0, self.squares - float(explained))


class Posterior:
    """Gibbs sampling of coefficients that are zero or normal around zero.

    Every coefficient is zero or has one of several widths, and the frequency of the widths among
    coefficients of a kind is drawn too. A weak effect counts as noise if most effects are zero, and
    is kept if many effects are weak (BayesR: Erbe et al. 2012, Moser et al. 2015).

    If other tasks are measured too, the task's loss is the sum of their loss and a specific loss,
    each with its own coefficients. A loss that the rows do not separate is then attributed to all
    tasks, not to the task alone.

    Args:
        kinds: Kind of every coefficient, numbered from 0, `(coefficients,)`.

    Attributes:
        task: Draws of the coefficients of the task's loss, `(draws, coefficients)`.
        others: Draws of those of the others' mean loss; 0 without other tasks.
        noise: The noise of the task's rows.
    """

    def __init__(self, kinds: Ints) -> None:
        self._beyond, self._shared = _Chains(kinds), _Chains(kinds)
        self.noise, self._others_noise = _Noise(), _Noise()
        self.task = self.others = np.zeros((0, len(kinds)))

    def fit(self, task: list[RowSums], others: list[RowSums], rng: np.random.Generator) -> None:
        """Draws coefficients given the evidence, starting at the last draws.

        Args:
            task: Sums of each group of rows of the task.
            others: Sums of each group of rows of the others; empty without other tasks.
            rng: Generator of the draws.
        """
        import scipy.linalg.blas  # noqa: F401  # only libraries that are loaded are limited
        from threadpoolctl import threadpool_limits

        beyond, shared = self._beyond, self._shared
        warming = _AGAIN if len(self.task) else _WARMING
        kept_task, kept_others = [], []
        with threadpool_limits(limits=1, user_api="blas"):  # faster for small matrices
            for sweep in range(warming + _KEPT):
                gram, moments = self.noise.weigh(task)
                if others:
                    others_gram, others_moments = self._others_noise.weigh(others)
                    remainder = (moments + others_moments)[:, None] - gram @ beyond.last
                    shared.sweep(gram + others_gram, remainder, rng)
                beyond.sweep(gram, moments[:, None] - gram @ shared.last, rng)
                losses = beyond.last + shared.last
                if sweep < warming:
                    self.noise.estimate(task, losses)
                    self._others_noise.estimate(others, shared.last)
                else:
                    kept_task.append(losses.T)
                    kept_others.append(shared.last.T)
        self.task = np.concatenate(kept_task)
        self.others = np.concatenate(kept_others)


class _Noise:
    """The noise of each group of rows.

    Attributes:
        deviations: Standard deviation of a row of each group, `(groups,)`.
    """

    def __init__(self) -> None:
        self.deviations = np.zeros(0)

    def weigh(self, evidence: list[RowSums]) -> tuple[Floats, Floats]:
        """Sums the evidence of all groups, weighted by precision: products and moments."""
        if len(self.deviations) != len(evidence):
            spread = np.array([group.squares / group.rows for group in evidence])
            self.deviations = np.sqrt(np.maximum(spread, _LEAST_NOISE**2))
        effects = np.array([group.design_effect for group in evidence])
        weights = 1 / (self.deviations**2 * effects)
        gram = np.tensordot(weights, np.array([group.gram for group in evidence]), 1)
        return gram, weights @ np.array([group.moments for group in evidence])

    def estimate(self, evidence: list[RowSums], coefficients: Floats) -> None:
        """Estimates the noise from the residuals of the chains, `(coefficients, chains)`."""
        variances = [
            np.mean([group.residual(chain) for chain in coefficients.T]) / group.rows
            for group in evidence
        ]
        self.deviations = np.sqrt(np.maximum(variances, _LEAST_NOISE**2))


class _Chains:
    """Parallel chains of draws of sparse coefficients.

    Args:
        kinds: Kind of every coefficient, `(coefficients,)`.

    Attributes:
        last: Each chain's last draw, `(coefficients, chains)`; a row has one coefficient of all
            chains.
    """

    def __init__(self, kinds: Ints) -> None:
        self._kinds = kinds
        self.last = np.zeros((len(kinds), _CHAINS))
        number = int(kinds.max()) + 1
        self._weights = np.full((_CHAINS, number, len(_PRIOR)), _PRIOR / _PRIOR.sum())

    def sweep(self, gram: Floats, moments: Floats, rng: np.random.Generator) -> None:
        """Draws each coefficient of each chain given the others.

        Args:
            gram: Weighted products of features, `(coefficients, coefficients)`.
            moments: Products of features and responses for each chain, `(coefficients, chains)`.
            rng: Generator of the draws.
        """
        from scipy.linalg.blas import dger

        last = self.last.copy()
        remainder = np.ascontiguousarray(moments - gram @ last)
        precision = np.diagonal(gram)
        variance = 1 / (precision[:, None] + 1 / np.square(_WIDTHS))  # `(coefficients, parts)`
        score = np.log(self._weights[:, self._kinds]).transpose(1, 2, 0)
        score += np.log(variance / np.square(_WIDTHS))[:, :, None] / 2
        score += rng.gumbel(size=score.shape)
        half = variance[:, :, None] / 2
        variance[:, 0] = 0.0  # no effect is exactly zero
        spread = np.sqrt(variance)
        normal = rng.normal(size=last.shape)
        part = np.empty(last.shape, dtype=np.intp)
        for j in rng.permutation(len(last)).tolist():
            before = last[j]
            alone = remainder[j] + precision[j] * before
            part[j] = chosen = (score[j] + half[j] * (alone * alone)).argmax(axis=0)
            new = variance[j][chosen] * alone + spread[j][chosen] * normal[j]
            change = new - before
            if change.any():
                # subtracts the product of gram[j] and change in place
                dger(-1.0, change, gram[j], a=remainder.T, overwrite_a=1)
                last[j] = new
        self.last = last
        self._draw_weights(part, rng)

    def _draw_weights(self, part: Ints, rng: np.random.Generator) -> None:
        """Draws, for each kind, the frequency of no effect and of each width."""
        for kind in range(self._weights.shape[1]):
            parts = part[self._kinds == kind]
            counts = (parts[:, :, None] == np.arange(len(_PRIOR))).sum(axis=0)
            drawn = rng.gamma(counts + _PRIOR)
            self._weights[:, kind] = np.maximum(drawn / drawn.sum(axis=1, keepdims=True), 1e-12)
