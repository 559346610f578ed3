"""Compressed sensing as in the paper: random groups of components, then a sparse regression."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from broca import designs
from broca.errors import BadInput, require_known
from broca.measurement import Bools, Floats, Plan
from broca.recovery import coefficients, make_recovery, recovery_name
from broca.recovery.uncertainty import DISCOVERY, RESAMPLES, additivity, uncertainty
from broca.searches.method import Method
from broca.searches.pilot import sizes_of
from broca.searches.problem import Problem, Ranking, Search, most_negative

NO_EFFECT = "the regression gave no component a negative coefficient"
NO_DISCOVERY = f"no component has a significant effect, at a false discovery rate of {DISCOVERY}"
_FEWEST_TO_ABSTAIN = 100
_MASKS = 200
_SPARSITY = 0.05
SPARSITIES = (0.01, 0.02, 0.05, 0.1)
"""Shares of the components that `cs-tuned` tries."""
MASKS = (100, 200, 300, 400)
"""Numbers of masks that `cs-tuned` tries."""
DESIGNS = {"bernoulli": designs.bernoulli, "stratified": designs.stratified}

Intercept = Literal["fitted", "baseline"]


def require_regression(recovery: Any, resamples: int, *, baseline: bool = False) -> None:
    """Refuses a recovery that does not fit, and a number of resamples below 0.

    Raises:
        BadInput: As said.
    """
    make_recovery(recovery, baseline=baseline)
    if resamples < 0:
        raise BadInput(f"the resamples must be 0 or more, not {resamples}")


def rank_by_regression(
    problem: Problem,
    masks: Bools,
    responses: Floats,
    recovery: Any,
    options: dict[str, Any],
    *,
    baseline: float | None = None,
    resamples: int,
) -> Ranking:
    """Estimates effects, their uncertainty and how well they add up.

    If no component is a discovery, at a false discovery rate of 0.1, nothing is selected. Otherwise
    components are selected by their effects, because selecting only discoveries would miss many
    components that matter if rows are few (`experiments/LOG.md`). With fewer than 100 masks the
    test is not applied, because even clear effects may not be discoveries.

    Args:
        problem: The problem that is solved.
        masks: Random masks, without the intact mask, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: Name of a recovery, or an estimator.
        options: The settings of the search, for the record, besides those of the regression.
        baseline: Fixed intercept; fitted if None.
        resamples: Number of resamples of the masks; 0 leaves out the frequencies.
    """
    estimator = make_recovery(recovery, baseline=baseline is not None)
    if baseline is not None:
        estimator.set_params(baseline=baseline)
    effects = coefficients(estimator, masks, responses, name=recovery_name(recovery))
    selected, reason = most_negative(effects, problem.k), NO_EFFECT
    statistics = uncertainty(
        masks, responses, estimator, k=problem.k, seed=problem.seed, resamples=resamples
    )
    q_values = statistics["q_values"]
    if selected and len(masks) >= _FEWEST_TO_ABSTAIN and q_values.min() > DISCOVERY:
        selected, reason = (), NO_DISCOVERY
    unsure = sum(q_values[column] > DISCOVERY for column in selected)
    if unsure:
        statistics["notes"] = (
            f"{unsure} of the {len(selected)} selected components may be due to chance (their "
            f"false discovery rate is above {DISCOVERY:g}); more rows would tell",
        )
    statistics["additivity"] = additivity(masks, responses, estimator, seed=problem.seed)
    options = {"masks": len(masks), "recovery": recovery_name(recovery), **options}
    return Ranking.of(effects, selected, reason, options, **statistics)


@dataclass(frozen=True, kw_only=True)
class CompressedSensing:
    """Measures masks that ablate random groups of components, all on the same items.

    Cost: (masks + 1) x items rows, with the intact model.

    Attributes:
        design: `bernoulli` or `stratified` from `broca.designs`.
        sparsity: Share of the components that a mask ablates; None stands for 0.05, or for a single
            component if that is less than one.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        intercept: `fitted`, or `baseline` to fix it at the intact model's response (eq. 1).
        resamples: Resamples of the masks, for frequencies; 0 leaves these out.
    """

    design: Callable[..., Bools]
    sparsity: float | None = None
    recovery: Any = "lasso"
    intercept: Intercept = "fitted"
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        require_known("intercept", self.intercept, get_args(Intercept), error=BadInput)
        require_regression(self.recovery, self.resamples, baseline=self.intercept == "baseline")

    def most_rows(self, problem: Problem) -> int:
        """Returns the rows of the masks that the budget allows."""
        self._masks(1, problem)  # a design refuses an impossible sparsity
        items = len(problem.items)
        return problem.budget((_MASKS + 1) * items, fewest=3 * items) // items * items

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Regresses the masks' mean responses on the masks."""
        masks = self._masks(self.most_rows(problem) // len(problem.items) - 1, problem)
        every = np.vstack([designs.intact(problem.components), masks])
        means = (yield Plan.crossed(every, problem.items)).mask_means()
        baseline = float(means[0]) if self.intercept == "baseline" else None
        items, share = len(problem.items), self._share(problem)
        options = {"items": items, "sparsity": share, "intercept": self.intercept}
        return rank_by_regression(
            problem, masks, means[1:], self.recovery, options,
            baseline=baseline, resamples=self.resamples,
        )  # fmt: skip

    def _masks(self, masks: int, problem: Problem) -> Bools:
        sparsity = self._share(problem)
        return self.design(masks, problem.components, sparsity=sparsity, seed=problem.seed)

    def _share(self, problem: Problem) -> float:
        """Returns the share of the components that a mask ablates."""
        if self.sparsity is not None:
            return self.sparsity
        # a little more than one component, so that rounding keeps it; at most half of them
        return min(0.5, max(_SPARSITY, 1.001 / problem.components))


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
        resamples: Resamples of the chosen masks, for frequencies; 0 leaves these out.
    """

    design: str = "stratified"
    recovery: Any = "lasso"
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        require_known("design", self.design, DESIGNS, error=BadInput)
        require_regression(self.recovery, self.resamples)

    def most_rows(self, problem: Problem) -> int:
        """Returns the rows of the intact model, of the largest numbers of masks and selections."""
        sizes, counts = self._settings(problem)
        return (1 + len(sizes) * (counts[-1] + len(counts))) * len(problem.items)

    def _settings(self, problem: Problem) -> tuple[list[int], tuple[int, ...]]:
        """Returns the sizes of masks, and the numbers of masks that the budget allows."""
        sizes, items = sizes_of(problem.components, SPARSITIES), len(problem.items)
        # each number of masks has a selection of each size, which is a mask too
        usual = (1 + len(sizes) * (MASKS[-1] + len(MASKS))) * items
        masks = problem.budget(usual, fewest=(1 + 3 * len(sizes)) * items) // items - 1
        most = min(MASKS[-1], masks // len(sizes) - len(MASKS))
        if most < MASKS[0]:
            return sizes, (masks // len(sizes) - 1,)
        return sizes, tuple(most * step // len(MASKS) for step in range(1, len(MASKS) + 1))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures all settings, then their selections, and ranks by the best setting."""
        sizes, counts = self._settings(problem)
        components, items = problem.components, problem.items
        (intact,) = (yield Plan.crossed(designs.intact(components), items)).mask_means()
        measured = {}
        selections = {}  # by size and number of masks, the columns ascending
        for size in sizes:
            # a little more than the share, so that rounding down does not lose a component
            share = min((size + 1e-6) / components, 1 - 1e-9)
            masks = DESIGNS[self.design](counts[-1], components, sparsity=share, seed=problem.seed)
            means = (yield Plan.crossed(masks, items)).mask_means()
            measured[size] = masks, means
            for count in counts:
                tried, name = make_recovery(self.recovery), recovery_name(self.recovery)
                effects = coefficients(tried, masks[:count], means[:count], name=name)
                selections[size, count] = tuple(sorted(most_negative(effects, problem.k)))
        sets = [columns for columns in dict.fromkeys(selections.values()) if columns]
        scores: dict[tuple[int, ...], float] = {(): intact}
        if sets:
            together = designs.of_sets(sets, components)
            means = (yield Plan.crossed(together, items)).mask_means()
            scores |= dict(zip(sets, means, strict=True))
        # of equally harmful settings the last is used: it has the most and the largest masks
        best = min(reversed(selections), key=lambda setting: scores[selections[setting]])
        size, count = best
        masks, means = measured[size]
        options = {
            "items": len(items), "sparsity": size / components, "design": self.design,
            "settings": len(selections), "selections": len(sets),
            "joint_drop": float(intact - scores[selections[best]]),
        }  # fmt: skip
        return rank_by_regression(
            problem, masks[:count], means[:count], self.recovery, options, resamples=self.resamples
        )


BERNOULLI = Method(
    name="cs-bernoulli", make=partial(CompressedSensing, design=designs.bernoulli),
    measures="random groups of heads, then a Lasso",
    answers="which heads matter together with other ablated heads", rows="200 masks x items",
    source="Bair et al., arXiv 2603.03335",
)  # fmt: skip
STRATIFIED = replace(
    BERNOULLI,
    name="cs-stratified",
    measures="random groups that ablate every head equally often, then a Lasso",
    make=partial(CompressedSensing, design=designs.stratified),
)
TUNED = Method(
    name="cs-tuned", make=Tuned,
    measures="`cs-stratified` at 16 settings; uses the setting whose heads harm most together",
    answers="which heads matter together with other ablated heads, at the best setting",
    rows="about 1,600 masks x items",
    source="the search over settings of Bair et al., arXiv 2603.03335",
)  # fmt: skip
