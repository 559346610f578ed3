"""Compressed sensing with the paper's search over settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from broca import designs
from broca.errors import BadInput, nearest
from broca.measurement import Plan
from broca.recovery import recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.method import Method
from broca.searches.pilot import sizes_of
from broca.searches.problem import Problem, Ranking, Search
from broca.searches.regression import rank_by_regression, require_regression

SPARSITIES = (0.01, 0.02, 0.05, 0.1)
MASKS = (100, 200, 300, 400)
DESIGNS = {"bernoulli": designs.bernoulli, "stratified": designs.stratified}


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Tries numbers of masks and sparsities, and uses the setting with the most harmful selection.

    For every sparsity the largest number of masks is measured; smaller numbers use the first of
    them. The k components that each setting selects are then ablated together on the same `locate`
    items, and the setting whose selection lowers the mean response most is used. The cost includes
    all of this: (1 + sparsities x most masks + distinct selections) x items rows, at most 161,700
    for 100 items. A budget reduces all numbers of masks in proportion.

    The choice on the items of the search overestimates the chosen setting; the verification on
    `report` items does not.

    Attributes:
        design: `stratified` or `bernoulli`.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        resamples: Resamples of the chosen masks, for intervals and frequencies; 0 leaves them out.
    """

    design: str = "stratified"
    recovery: Any = "lasso"
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise BadInput(
                f"design '{self.design}' is unknown{nearest(self.design, DESIGNS)}; use one of "
                f"{', '.join(DESIGNS)}"
            )
        require_regression(self.recovery, self.resamples)

    def require(self, problem: Problem) -> tuple[list[int], tuple[int, ...]]:
        """Returns the sizes of masks, and the numbers of masks that the budget allows."""
        sizes, items = sizes_of(problem.components, SPARSITIES), len(problem.items)
        if problem.rows is None:
            return sizes, MASKS
        fewest = (1 + 3 * len(sizes)) * items
        affordable = problem.budget(problem.rows, fewest=fewest, method="cs-tuned") // items - 1
        # each number of masks has a selection of each size, which is a mask too
        most = (affordable - len(MASKS) * len(sizes)) // len(sizes)
        if most < MASKS[0]:
            return sizes, ((affordable - len(sizes)) // len(sizes),)
        most = min(most, MASKS[-1])
        return sizes, tuple(most * step // len(MASKS) for step in range(1, len(MASKS) + 1))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures all settings, then their selections, and ranks by the best setting."""
        sizes, counts = self.require(problem)
        components, items = problem.components, problem.items
        (intact,) = (yield Plan.crossed(designs.intact(components), items)).mask_means()
        measured = {}
        selections = {}  # by size and number of masks, the columns ascending
        for size in sizes:
            masks = DESIGNS[self.design](
                counts[-1],
                components,
                # a little more than the share, so that rounding down does not lose a component
                sparsity=min((size + 1e-6) / components, 1 - 1e-9),
                seed=problem.seed,
            )
            means = (yield Plan.crossed(masks, items)).mask_means()
            measured[size] = masks, means
            for count in counts:
                ranking = rank_by_regression(
                    problem, masks[:count], means[:count], self.recovery, {}, resamples=0
                )
                selections[size, count] = tuple(sorted(ranking.selected))
        sets = [columns for columns in dict.fromkeys(selections.values()) if columns]
        scores: dict[tuple[int, ...], float] = {(): intact}
        if sets:
            together = np.zeros((len(sets), components), dtype=bool)
            for mask, columns in zip(together, sets, strict=True):
                mask[list(columns)] = True
            means = (yield Plan.crossed(together, items)).mask_means()
            scores |= dict(zip(sets, means, strict=True))
        # of equally harmful settings the last is used: it has the most and the largest masks
        best = min(reversed(selections), key=lambda setting: scores[selections[setting]])
        size, count = best
        masks, means = measured[size]
        options = {
            "masks": count,
            "items": len(items),
            "sparsity": size / components,
            "design": self.design,
            "recovery": recovery_name(self.recovery),
            "settings": len(selections),
            "selections": len(sets),
            "joint_drop": intact - scores[selections[best]],
        }
        return rank_by_regression(
            problem,
            masks[:count],
            means[:count],
            self.recovery,
            options,
            resamples=self.resamples,
        )


METHOD = Method(
    name="cs-tuned", make=Tuned,
    measures="`cs-stratified` at 16 settings; uses the setting whose heads harm most together",
    answers="which heads matter together with other ablated heads, at the best setting",
    rows="about 1,600 masks x items",
    usual_rows=lambda p: 1600 * len(p.items),
    source="the search over settings of Bair et al., arXiv 2603.03335",
    tuning={},
)  # fmt: skip
