"""Compressed sensing with the paper's search over settings."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput, nearest
from broca.measurement import Measurement, Plan
from broca.recovery import make_recovery, recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.base import Problem, SearchGenerator
from broca.searches.pilot import sizes_of
from broca.searches.records import Method
from broca.searches.regression import rank_by_regression, require_resamples

SPARSITIES = (0.01, 0.02, 0.05, 0.1)
MASKS = (100, 200, 300, 400)
DESIGNS = {"bernoulli": designs.bernoulli, "stratified": designs.stratified}


@dataclass(frozen=True)
class _Setting:
    """A setting and its selection, the columns ascending."""

    size: int
    masks: int
    selected: tuple[int, ...]


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
        make_recovery(self.recovery)
        if self.design not in DESIGNS:
            raise BadInput(
                f"design '{self.design}' is unknown{nearest(self.design, DESIGNS)}; use one of "
                f"{', '.join(DESIGNS)}"
            )
        require_resamples(self.resamples)

    def require(self, problem: Problem) -> tuple[list[int], tuple[int, ...]]:
        """Returns the sizes of masks, and the numbers of masks that the budget allows."""
        sizes = sizes_of(problem.components, SPARSITIES)
        return sizes, _counts(problem, len(sizes))

    def generate(self, problem: Problem) -> SearchGenerator:
        """Measures all settings, then their selections, and ranks by the best setting."""
        sizes, counts = self.require(problem)
        (intact,) = yield from _means(designs.intact(problem.components), problem)
        measured = {}
        settings = []
        for size in sizes:
            masks = DESIGNS[self.design](
                counts[-1],
                problem.components,
                # a little more than the share, so that rounding down does not lose a component
                sparsity=min((size + 1e-6) / problem.components, 1 - 1e-9),
                seed=problem.seed,
            )
            means = yield from _means(masks, problem)
            measured[size] = masks, means
            for count in counts:
                ranking = rank_by_regression(
                    problem, masks[:count], means[:count], self.recovery, resamples=0
                )
                settings.append(_Setting(size, count, tuple(sorted(ranking.selected))))
        sets = list(dict.fromkeys(setting.selected for setting in settings if setting.selected))
        scores: dict[tuple[int, ...], float] = {(): intact}
        if sets:
            together = np.zeros((len(sets), problem.components), dtype=bool)
            for mask, columns in zip(together, sets, strict=True):
                mask[list(columns)] = True
            scores |= dict(zip(sets, (yield from _means(together, problem)), strict=True))
        # of equally harmful settings the last is used: it has the most and the largest masks
        best = min(reversed(settings), key=lambda setting: scores[setting.selected])
        masks, means = measured[best.size]
        ranking = rank_by_regression(
            problem,
            masks[: best.masks],
            means[: best.masks],
            self.recovery,
            resamples=self.resamples,
        )
        record = {
            "masks": best.masks,
            "items": len(problem.items),
            "sparsity": best.size / problem.components,
            "design": self.design,
            "recovery": recovery_name(self.recovery),
            "settings": len(settings),
            "selections": len(sets),
            "joint_drop": intact - scores[best.selected],
        }
        return replace(ranking, options=record)


def _means(
    masks: NDArray[np.bool_], problem: Problem
) -> Generator[Plan, Measurement, NDArray[np.float64]]:
    """Measures the mean response under every mask, over every item."""
    measurement = yield Plan.crossed(masks, problem.items)
    return measurement.mask_means()


def _counts(problem: Problem, sizes: int) -> tuple[int, ...]:
    """Returns the numbers of masks to try, within the budget.

    Raises:
        BadInput: The budget is too small.
    """
    if problem.rows is None:
        return MASKS
    in_all = problem.rows // len(problem.items) - 1
    for steps in (len(MASKS), 1):
        most = (in_all - steps * sizes) // sizes
        if most >= MASKS[-1]:
            return MASKS
        if most >= (MASKS[0] if steps > 1 else 2):
            return tuple(most * step // steps for step in range(1, steps + 1))
    fewest = (1 + 3 * sizes) * len(problem.items)
    raise BadInput(
        f"`rows` {problem.rows} is too few for cs-tuned on {len(problem.items)} items: it needs "
        f"{fewest} at least, and 161,700 for the paper's settings on 100 items; use more rows or "
        "fewer `items`"
    )


METHOD = Method(
    name="cs-tuned", order=14, make=Tuned,
    measures="`cs-stratified` at 16 settings; uses the setting whose heads harm most together",
    answers="which heads matter together with other ablated heads, at the best setting",
    rows="about 1,600 masks x items",
    usual_rows=lambda p: 1600 * len(p.items),
    source="the search over settings of Bair et al., arXiv 2603.03335",
    tuning={},
)  # fmt: skip
