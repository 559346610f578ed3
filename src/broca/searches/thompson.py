"""Thompson sampling: ablates the components that are worst under a draw from the posterior."""

from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Bools, Floats, Plan
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search, harmful

_ROWS_PER_COMPONENT = 20
"""Rows for each component if no budget is given."""
_INTACT = 10
"""Inverse of the maximum share of rows that measure the intact model."""
_LEAST_NOISE = 0.1
"""Minimum share of the responses' variance that counts as noise."""


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

    def most_rows(self, problem: Problem) -> int:
        """Returns the budget in rows."""
        components, group = problem.components, self._group(problem)
        if not 1 <= group <= components or self.rounds < 1:
            raise BadInput(
                f"thompson takes groups of 1 to {components} and 1 round or more, not groups of "
                f"{group} and {self.rounds} rounds"
            )
        usual = _ROWS_PER_COMPONENT * components + len(problem.items)
        return problem.budget(usual, fewest=2 * components)

    def _group(self, problem: Problem) -> int:
        return min(problem.k, problem.components) if self.group is None else self.group

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures batches of groups, each the worst under a draw from the posterior."""
        budget, group = self.most_rows(problem), self._group(problem)
        rng = np.random.default_rng([problem.seed, 0x7503])
        items = problem.items[: max(1, budget // _INTACT)]
        intact = (yield Plan.crossed(designs.intact(problem.components), items)).responses
        remaining, measured = budget - len(items), 0
        belief = Belief(problem.components)
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
        return Ranking.of(
            belief.mean,
            harmful(belief.mean, intervals, problem.k),
            "no component is harmful with a posterior probability of 95 %",
            {"group": group, "rounds": self.rounds},
            intervals=intervals,
        )


class Belief:
    """The Gaussian posterior of the effects, negative for needed components.

    Args:
        components: Number of components.
    """

    def __init__(self, components: int) -> None:
        self.mean = np.zeros(components)
        self._root: Floats = np.eye(components)
        self._gram, self._moment = np.zeros((components, components)), np.zeros(components)
        self._squares, self._rows, self._total, self._largest = 0.0, 0, 0.0, 0.0

    def worst(self, group: int, rng: np.random.Generator) -> Bools:
        """Returns a mask of the worst 1 to `group` components of a draw."""
        drawn = self.mean + self._root @ rng.normal(size=len(self.mean))
        size = int(rng.integers(1, group + 1))
        mask = np.zeros(len(drawn), dtype=bool)
        mask[np.argsort(drawn, kind="stable")[:size]] = True
        return mask

    def learn(self, masks: Bools, changes: Floats) -> None:
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
        squares = self._squares - 2 * self.mean @ self._moment + self.mean @ self._gram @ self.mean
        noise = max(float(squares) / self._rows, _LEAST_NOISE * variance, 1e-12)
        precision = self._gram / noise + np.eye(len(matrix.T)) / self._largest**2
        covariance = np.linalg.inv(precision)
        covariance = (covariance + covariance.T) / 2
        self.mean = covariance @ self._moment / noise
        self._root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def deviations(self) -> Floats:
        """Standard deviation of every effect, `(components,)`."""
        deviations: Floats = np.sqrt((self._root**2).sum(axis=1))
        return deviations


METHOD = Method(
    name="thompson", make=Thompson,
    measures="adaptive groups: the worst heads of a draw from the posterior",
    answers="which heads matter, with few rows on the others",
    rows="20 x heads",
    source="the method that the released code of arXiv 2603.03335 calls Thompson sampling; the "
    "posterior, the groups and the batches are broca's own",
)  # fmt: skip
