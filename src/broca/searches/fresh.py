"""Compressed sensing with a new mask for every row, which reduces the noise between masks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Bools, Floats, Plan, Response
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.compressed import rank_by_regression, require_regression
from broca.searches.method import Method
from broca.searches.pilot import SHARES, pilot, sizes_of
from broca.searches.problem import Problem, Ranking, Search

_ROWS = 2000
_FEWEST = 60


@dataclass(frozen=True, kw_only=True)
class FreshMasks:
    """Measures a new random mask in every row, as the change from the intact model on its item.

    A pilot finds the size of masks that costs about a third of the intact response. If the prompts
    share a prefix, which the rows of a mask can share, a mask is measured on several items
    (`items_per_mask`). The pilot's rows of the chosen size are used in the regression.

    Cost: 2,000 rows, or the budget: the intact model on the items, the pilot, then fresh masks.

    Attributes:
        sparsity: Share of the components that a mask ablates; None lets the pilot choose it.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        resamples: Resamples of the masks, for frequencies; 0 leaves these out.
    """

    sparsity: float | None = None
    recovery: Any = "non-positive"
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if self.sparsity is not None and not 0 < self.sparsity < 1:
            raise BadInput(f"the sparsity must lie between 0 and 1, not at {self.sparsity:g}")
        require_regression(self.recovery, self.resamples)

    def most_rows(self, problem: Problem) -> int:
        """Returns the budget in rows."""
        sizes, components = self._sizes(problem), problem.components
        if max(sizes) >= components:  # masks without a difference show no effects
            raise BadInput(
                f"masks of {max(sizes)} of {components} components tell none apart: use a smaller "
                "sparsity, or one-shot if there is only one component"
            )
        return problem.budget(_ROWS, fewest=_FEWEST)

    def _sizes(self, problem: Problem) -> list[int]:
        """Returns the sizes of masks that the pilot tries."""
        return sizes_of(problem.components, SHARES if self.sparsity is None else [self.sparsity])

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures the intact model, the pilot and the fresh masks, and regresses."""
        budget, components = self.most_rows(problem), problem.components
        rng = np.random.default_rng([problem.seed, 0xF4E5])
        response: Response | None = "probability" if problem.continuous else None
        items = rng.permutation(problem.items)[: max(4, budget // 8)]
        piloted: dict[int, Bools] = {}
        turn = 0

        def drops(masks: Bools) -> Search[Floats]:
            """Measures the drop of every mask on each of its items, `(masks, items of each)`."""
            nonlocal turn
            # two items of a mask separate the variances of items and masks
            each = 2 if problem.prefix_tokens > 0 and len(items) > 1 else 1
            met = (turn + np.arange(len(masks) * each)) % len(items)
            turn += len(met)
            piloted[int(masks[0].sum())] = masks
            index = np.repeat(np.arange(len(masks)), each)
            responses = (yield Plan(masks, index, items[met], response=response)).responses
            return (intact[met] - responses).reshape(len(masks), each)

        none = designs.intact(components)
        intact = (yield Plan.crossed(none, items, response=response)).responses
        sizes = self._sizes(problem)
        count, mean = max(2, budget // (25 * len(sizes))), float(intact.mean())
        size, lost = yield from pilot(
            drops, components, sizes=sizes, masks=count, rng=rng, intact=mean
        )
        prefix, item = problem.prefix_tokens, problem.item_tokens
        per_mask = min(items_per_mask(lost[size], prefix=prefix, item=item), len(items))
        rows, seed = budget - len(items) - turn, problem.seed
        masks, index, met = designs.fresh(
            rows, components, items=len(items), size=size, items_per_mask=per_mask, seed=seed
        )
        responses = (yield Plan(masks, index, items[met], response=response)).responses
        means = np.bincount(index, weights=responses - intact[met]) / np.bincount(index)
        # the pilot's masks of this size are evidence too
        masks = np.vstack([piloted[size], masks])
        changes = np.concatenate([-lost[size].mean(axis=1), means])
        options = {
            "items": len(items), "sparsity": size / components,
            "items_per_mask": per_mask, "response": response,
        }  # fmt: skip
        return rank_by_regression(
            problem, masks, changes, self.recovery, options, resamples=self.resamples
        )


def items_per_mask(drops: Floats, *, prefix: float, item: float) -> int:
    """Returns the best number of items for each mask if its rows share a prefix.

    A mask reads its prefix once and the other tokens of each item. For a given number of tokens,
    the variance of the mean of many masks is minimal at `sqrt((s_item**2 / s_mask**2) * prefix /
    item)` items (two-stage sampling, Cochran 1977, section 10.6).

    Args:
        drops: Drops of masks on two items each, `(masks, 2)`.
        prefix: Number of tokens with which all items begin.
        item: Mean number of an item's other tokens.
    """
    if prefix <= 0 or drops.shape[1] < 2:
        return 1
    within = float(drops.var(axis=1, ddof=1).mean())
    between = float(drops.mean(axis=1).var(ddof=1)) - within / drops.shape[1]
    if within <= 0:
        return 1
    between = max(between, within / 100)  # a small pilot may estimate no variance
    return max(1, round(float(np.sqrt(within / between * prefix / max(item, 1.0)))))


METHOD = Method(
    name="cs-fresh", make=FreshMasks, response="probability", one_mask_size=True,
    measures="a new random group in every row, its size from a pilot",
    answers="which heads matter together with other ablated heads, with fewer rows", rows="2,000",
)  # fmt: skip
