"""Thompson sampling: ablates the components that are worst under a draw from the posterior."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful
from broca.searches.records import Method

ROWS_PER_COMPONENT = 20
"""Rows for each component if no budget is given."""
_FEWEST_PER_COMPONENT = 2
_INTACT = 10
"""Inverse of the maximum share of rows that measure the intact model."""
_LEAST_NOISE = 0.1
"""Minimum share of the responses' variance that counts as noise."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """Adaptive groups by a Gaussian posterior of the loss of every component.

    In the model, the loss of a row from the intact response of its item is the sum of the losses of
    its components, plus noise; the prior of a loss is Gaussian around 0, as wide as the largest
    measured loss. For each row the losses are drawn from the posterior, and the worst 1 to `group`
    components of the draw are ablated: harmful and unknown components are the most frequent. The
    posterior is updated after each of `rounds` batches (the paper's code: after every evaluation).
    The effect is the posterior mean. Cost: 20 x components rows, or the budget.

    Attributes:
        group: Maximum number of components that a row ablates; by default k.
        rounds: Number of updates of the posterior.
    """

    group: int | None = None
    rounds: int = 20

    def require(self, problem: Problem) -> tuple[int, int]:
        """Returns the budget in rows, and the maximum number of components that a row ablates."""
        group = min(problem.k, problem.components) if self.group is None else self.group
        if not 1 <= group <= problem.components or self.rounds < 1:
            raise BadInput(
                f"thompson takes groups of 1 to {problem.components} and 1 round or more, not "
                f"groups of {group} and {self.rounds} rounds"
            )
        fewest = _FEWEST_PER_COMPONENT * problem.components
        budget = problem.rows
        if budget is None:
            budget = ROWS_PER_COMPONENT * problem.components + len(problem.items)
        if budget < fewest:
            raise BadInput(
                f"`rows` {budget} is too few for thompson: it needs {fewest} at least, two for "
                "each component; use more rows or another method"
            )
        return budget, group

    def generate(self, problem: Problem) -> SearchGenerator:
        """Measures batches of groups, each the worst under a draw from the posterior."""
        budget, group = self.require(problem)
        rng = np.random.default_rng([problem.seed, 0x7503])
        items = problem.items[: max(1, budget // _INTACT)]
        intact = (yield Plan.crossed(designs.intact(problem.components), items)).responses
        remaining, measured = budget - len(items), 0
        belief = _Belief(problem.components)
        for number in range(self.rounds):
            rows = remaining // (self.rounds - number)
            remaining -= rows
            if not rows:
                continue
            masks = np.stack([belief.worst(group, rng) for _ in range(rows)])
            places = (measured + np.arange(rows)) % len(items)
            measured += rows
            measurement = yield Plan(masks, np.arange(rows), items[places])
            belief.learn(masks, measurement.responses - intact[places])
        spread = 1.645 * belief.deviations()
        intervals = np.stack([belief.mean - spread, belief.mean + spread], axis=1)
        order, selected, reason = harmful(
            belief.mean,
            intervals,
            problem.k,
            reason="no component is harmful with a posterior probability of 95 %",
        )
        record = {"rows": budget, "group": group, "rounds": self.rounds}
        return Ranking(belief.mean, order, selected, reason, record, intervals=intervals)


@dataclass
class _Belief:
    """The Gaussian posterior of the effects, negative for needed components.

    Attributes:
        components: Number of components.
    """

    components: int
    mean: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.mean = np.zeros(self.components)
        self._root: Floats = np.eye(self.components)
        self._gram = np.zeros((self.components, self.components))
        self._moment = np.zeros(self.components)
        self._squares, self._rows, self._total, self._largest = 0.0, 0, 0.0, 0.0

    def worst(self, group: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Returns a mask of the worst 1 to `group` components of a draw."""
        drawn = self.mean + self._root @ rng.normal(size=self.components)
        size = int(rng.integers(1, group + 1))
        mask = np.zeros(self.components, dtype=bool)
        mask[np.argsort(drawn, kind="stable")[:size]] = True
        return mask

    def learn(self, masks: NDArray[np.bool_], changes: Floats) -> None:
        """Adds rows: their masks, and their responses minus the intact responses."""
        matrix = masks.astype(np.float64)
        self._gram += matrix.T @ matrix
        self._moment += matrix.T @ changes
        self._squares += float(changes @ changes)
        self._total += float(changes.sum())
        self._rows += len(changes)
        self._largest = max(self._largest, float(np.abs(changes).max()))
        if self._largest == 0:  # no change so far
            return
        variance = self._squares / self._rows - (self._total / self._rows) ** 2
        noise = max(self._residual(), _LEAST_NOISE * variance, 1e-12)
        precision = self._gram / noise + np.eye(self.components) / self._largest**2
        covariance = np.linalg.inv(precision)
        covariance = (covariance + covariance.T) / 2
        self.mean = covariance @ self._moment / noise
        self._root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def deviations(self) -> Floats:
        """Standard deviation of every effect, `(components,)`."""
        deviations: Floats = np.sqrt((self._root**2).sum(axis=1))
        return deviations

    def _residual(self) -> float:
        """Returns the mean squared residual of all rows."""
        squares = self._squares - 2 * self.mean @ self._moment + self.mean @ self._gram @ self.mean
        return float(squares) / self._rows


METHOD = Method(
    name="thompson", order=6, make=Thompson,
    measures="adaptive groups: the worst heads of a draw from the posterior",
    answers="which heads matter, with few rows on the others",
    rows="20 x heads",
    usual_rows=lambda p: 20 * p.components,
    source="the method that the released code of arXiv 2603.03335 calls Thompson sampling; the "
    "posterior, the groups and the batches are broca's own",
)  # fmt: skip
