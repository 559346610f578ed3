"""Ranks components by a regression of responses on random masks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.recovery import (
    DISCOVERY,
    additivity,
    coefficients,
    make_recovery,
    recovery_name,
    uncertainty,
)
from broca.searches.base import Problem, Ranking, most_negative

NO_EFFECT = "the regression gave no component a negative coefficient"

NO_DISCOVERY = f"no component has a significant effect, at a false discovery rate of {DISCOVERY}"
_FEWEST_TO_ABSTAIN = 100


def rank_by_regression(
    problem: Problem,
    masks: NDArray[np.bool_],
    responses: NDArray[np.float64],
    recovery: Any,
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
        baseline: Fixed intercept; fitted if None.
        resamples: Number of resamples of the masks; 0 leaves out intervals and frequencies.
    """
    name = recovery_name(recovery)
    estimator = make_recovery(recovery, baseline=baseline is not None)
    if baseline is not None:
        estimator.set_params(baseline=baseline)
    estimator.fit(masks, responses)
    effects = coefficients(estimator, masks.shape[1], name=name)
    order, selected, reason = most_negative(effects, problem.k, reason=NO_EFFECT)
    ranking = Ranking(
        effects,
        order,
        selected,
        reason,
        additivity=additivity(masks, responses, estimator, seed=problem.seed),
    )
    if not resamples:
        return ranking
    statistics = uncertainty(
        masks, responses, estimator, k=problem.k, seed=problem.seed, resamples=resamples
    )
    if selected and len(masks) >= _FEWEST_TO_ABSTAIN and statistics.q_values.min() > DISCOVERY:
        selected, reason = (), NO_DISCOVERY
    return replace(
        ranking,
        selected=selected,
        reason=reason,
        intervals=statistics.intervals,
        frequency=statistics.frequency,
        p_values=statistics.p_values,
        q_values=statistics.q_values,
        notes=_doubts(selected, statistics.q_values),
    )


def require_resamples(resamples: int) -> None:
    """Refuses a number of resamples below 0.

    Raises:
        BadInput: The number is below 0.
    """
    if resamples < 0:
        raise BadInput(f"the resamples must be 0 or more, not {resamples}")


def _doubts(selected: tuple[int, ...], q_values: NDArray[np.float64]) -> tuple[str, ...]:
    """Returns a note if the selection may be due to chance."""
    unsure = sum(q_values[column] > DISCOVERY for column in selected)
    if not unsure:
        return ()
    return (
        f"{unsure} of the {len(selected)} selected components are not discoveries at a "
        f"false discovery rate of {DISCOVERY:g}: they may be due to chance; more rows would tell",
    )
