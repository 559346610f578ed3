"""Rankings by a regression of responses on random masks, for the `cs-` methods and refits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.recovery import coefficients, make_recovery, recovery_name
from broca.recovery.uncertainty import DISCOVERY, additivity, uncertainty
from broca.searches.problem import Problem, Ranking, most_negative

NO_EFFECT = "the regression gave no component a negative coefficient"
NO_DISCOVERY = f"no component has a significant effect, at a false discovery rate of {DISCOVERY}"
_FEWEST_TO_ABSTAIN = 100


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
    masks: NDArray[np.bool_],
    responses: NDArray[np.float64],
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
        options: The settings of the search, for the record.
        baseline: Fixed intercept; fitted if None.
        resamples: Number of resamples of the masks; 0 leaves out intervals and frequencies.
    """
    estimator = make_recovery(recovery, baseline=baseline is not None)
    if baseline is not None:
        estimator.set_params(baseline=baseline)
    estimator.fit(masks, responses)
    effects = coefficients(estimator, masks.shape[1], name=recovery_name(recovery))
    selected, reason, statistics = most_negative(effects, problem.k), NO_EFFECT, {}
    if resamples:
        statistics = vars(
            uncertainty(
                masks, responses, estimator, k=problem.k, seed=problem.seed, resamples=resamples
            )
        )
        q_values = statistics["q_values"]
        if selected and len(masks) >= _FEWEST_TO_ABSTAIN and q_values.min() > DISCOVERY:
            selected, reason = (), NO_DISCOVERY
        unsure = sum(q_values[column] > DISCOVERY for column in selected)
        if unsure:
            statistics["notes"] = (
                f"{unsure} of the {len(selected)} selected components are not discoveries at a "
                f"false discovery rate of {DISCOVERY:g}: they may be due to chance; more rows "
                "would tell",
            )
    statistics["additivity"] = additivity(masks, responses, estimator, seed=problem.seed)
    return Ranking.of(effects, selected, reason, options, **statistics)
