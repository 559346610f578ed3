"""Compressed sensing with a new mask for every row, which reduces the noise between masks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.recovery import make_recovery, recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.base import Problem, SearchGenerator
from broca.searches.pilot import pilot, sizes_of
from broca.searches.records import Method
from broca.searches.regression import rank_by_regression, require_resamples

DEFAULT_ROWS = 2000
_FEWEST = 60

ResponseGenerator = Generator[Plan, Measurement, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class FreshMasks:
    """Measures a new random mask in every row, as the change from the intact model on its item.

    A pilot finds the size of masks that costs about a third of the intact response. If the prompts
    share a prefix, which the rows of a mask can share, a mask is measured on several items
    (`items_per_mask`). The pilot's rows of the chosen size are used in the regression.

    Cost: 2,000 rows, or the budget: the intact model on the items, the pilot, then fresh masks.
    With `both` every row counts twice.

    Attributes:
        sparsity: Share of the components that a mask ablates; None lets the pilot choose it.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        resamples: Resamples of the masks, for intervals and frequencies; 0 leaves them out.
        both: Whether every row is measured in the probability and in the task's own metric, whose
            mean is the response: the probability is graded, and the metric is the target.

    Raises:
        BadInput: The budget is too small, an option is invalid, or `both` is set and items have no
            probability.
    """

    sparsity: float | None = None
    recovery: Any = "non-positive"
    resamples: int = RESAMPLES
    both: bool = False

    def __post_init__(self) -> None:
        make_recovery(self.recovery)
        if not isinstance(self.both, bool):
            raise BadInput(f"cs-fresh's both must be true or false, not {self.both}")
        if self.sparsity is not None and not 0 < self.sparsity < 1:
            raise BadInput(f"the sparsity must lie between 0 and 1, not at {self.sparsity:g}")
        require_resamples(self.resamples)

    def require(self, problem: Problem) -> int:
        """Returns the budget in rows."""
        if self.both and not problem.continuous:
            raise BadInput(
                "cs-fresh's both combines the probability with the task's metric, and here rows "
                "return one of them: leave out `response`, or leave out both"
            )
        budget = DEFAULT_ROWS if problem.rows is None else problem.rows
        fewest = _FEWEST * self.cost
        if budget < fewest:
            raise BadInput(
                f"`rows` {budget} is too few for cs-fresh: it needs {fewest} at least; use more "
                "rows"
            )
        return budget

    def generate(self, problem: Problem) -> SearchGenerator:
        """Measures the intact model, the pilot and the fresh masks, and regresses."""
        return _Rounds(self, problem, self.require(problem)).generate()

    @property
    def cost(self) -> int:
        """Cost in rows of a (mask, item) pair."""
        return 2 if self.both else 1


@dataclass
class _Rounds:
    """A search and its measurements.

    Attributes:
        strategy: The options of the search.
        problem: The problem that it solves.
        budget: Maximum number of rows.
    """

    strategy: FreshMasks
    problem: Problem
    budget: int

    def __post_init__(self) -> None:
        problem = self.problem
        self._affordable = self.budget // self.strategy.cost
        self._rng = np.random.default_rng([problem.seed, 0xF4E5])
        self._response: Response | None = "probability" if problem.continuous else None
        most = max(4, self._affordable // 8)
        self._items = self._rng.permutation(problem.items)[:most]
        self._masks = np.zeros((0, problem.components), dtype=bool)
        self._changes = np.zeros(0)
        self._turn = 0

    def generate(self) -> SearchGenerator:
        """Measures the intact model, the pilot and the fresh masks, and regresses."""
        problem, items = self.problem, self._items
        none = designs.intact(problem.components)
        self._intact = yield from self._ask(Plan.crossed(none, items))
        size, per_mask = yield from self._pilot()
        rows = self._affordable - len(items) - self._turn
        masks, index, met = designs.fresh(
            rows,
            problem.components,
            items=len(items),
            size=size,
            items_per_mask=per_mask,
            seed=problem.seed,
        )
        responses = yield from self._ask(Plan(masks, index, items[met]))
        changes = responses - self._intact[met]
        means = np.bincount(index, weights=changes) / np.bincount(index)
        usable = self._masks.sum(axis=1) == size
        self._masks = np.vstack([self._masks[usable], masks])
        self._changes = np.concatenate([self._changes[usable], means])
        ranking = rank_by_regression(
            problem,
            self._masks,
            self._changes,
            self.strategy.recovery,
            resamples=self.strategy.resamples,
        )
        record = {
            "rows": self.budget,
            "items": len(items),
            "masks": len(self._masks),
            "sparsity": size / problem.components,
            "items_per_mask": per_mask,
            "recovery": recovery_name(self.strategy.recovery),
            "response": self._response,
            "both": self.strategy.both,
        }
        return replace(ranking, options=record)

    def _pilot(self) -> Generator[Plan, Measurement, tuple[int, int]]:
        """Finds the size of masks, and the number of items of each."""
        problem = self.problem
        sizes = sizes_of(problem.components)
        if self.strategy.sparsity is not None:
            sizes = [max(1, round(self.strategy.sparsity * problem.components))]
        size, drops = yield from pilot(
            self._drops,
            problem.components,
            sizes=sizes,
            masks=max(2, self._affordable // (25 * len(sizes))),
            rng=self._rng,
            intact=float(self._intact.mean()),
        )
        per_mask = items_per_mask(
            drops[size], prefix=problem.prefix_tokens, item=problem.item_tokens
        )
        return size, min(per_mask, len(self._items))

    def _drops(self, masks: NDArray[np.bool_]) -> ResponseGenerator:
        """Measures the drop of every mask on each of its items, `(masks, items of each)`."""
        # two items of a mask separate the variances of items and masks
        per_mask = 2 if self.problem.prefix_tokens > 0 and len(self._items) > 1 else 1
        met = (self._turn + np.arange(len(masks) * per_mask)) % len(self._items)
        self._turn += len(met)
        index = np.repeat(np.arange(len(masks)), per_mask)
        responses = yield from self._ask(Plan(masks, index, self._items[met]))
        drops = (self._intact[met] - responses).reshape(len(masks), per_mask)
        self._masks = np.vstack([self._masks, masks])
        self._changes = np.concatenate([self._changes, -drops.mean(axis=1)])
        return drops

    def _ask(self, plan: Plan) -> ResponseGenerator:
        measurement = yield replace(plan, response=self._response)
        if self.strategy.cost == 1:
            return measurement.responses
        metric = yield replace(plan, response="accuracy")
        return (measurement.responses + metric.responses) / 2


def items_per_mask(drops: NDArray[np.float64], *, prefix: float, item: float) -> int:
    """Returns the best number of items for each mask if its rows share a prefix.

    A mask reads its prefix once and the other tokens of each item. For a given number of tokens,
    the variance of the mean of many masks is minimal at `sqrt((s_item**2 / s_mask**2) * prefix /
    item)` items (two-stage sampling, Cochran 1977, section 10.6).

    Args:
        drops: Drops of masks on two items each, `(masks, 2)`.
        prefix: Number of tokens with which all items begin.
        item: Mean number of an item's other tokens.
    """
    if prefix <= 0 or drops.ndim != 2 or drops.shape[1] < 2 or len(drops) < 2:
        return 1
    within = float(drops.var(axis=1, ddof=1).mean())
    between = float(drops.mean(axis=1).var(ddof=1)) - within / drops.shape[1]
    if within <= 0:
        return 1
    between = max(between, within / 100)  # a small pilot may estimate no variance
    return max(1, round(float(np.sqrt(within / between * prefix / max(item, 1.0)))))


METHOD = Method(
    name="cs-fresh", order=13, make=FreshMasks, response="probability", one_mask_size=True,
    measures="a new random group in every row, its size from a pilot",
    answers="which heads matter together with other ablated heads, with fewer rows",
    rows="2,000",
    usual_rows=lambda p: 2000,
)  # fmt: skip
