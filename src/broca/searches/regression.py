"""From masks and their responses to a ranking: what every search by random masks ends with."""

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

NO_DISCOVERY = (
    f"no component's effect can be told from chance, at a rate of false discoveries of {DISCOVERY}"
)
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
    """Recovers effects, and says how sure they are and how well they add up.

    Where no component at all is a discovery, at a rate of false ones of 0.1, nothing is selected.
    Single components are selected by their effect and not by this: with few rows that would drop
    many that matter (`experiments/LOG.md`). With fewer than 100 masks even clear effects may not
    show, and nothing is decided by this.

    Args:
        problem: What is solved.
        masks: Random masks, without the intact model, `(masks, components)`.
        responses: Mean response under each, `(masks,)`.
        recovery: Name of a recovery, or an estimator.
        baseline: Where to fix the intercept; fitted if None.
        resamples: Resamples of the masks; 0 leaves out what is said of each component.
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
    known = uncertainty(
        masks, responses, estimator, k=problem.k, seed=problem.seed, resamples=resamples
    )
    if selected and len(masks) >= _FEWEST_TO_ABSTAIN and known.q_values.min() > DISCOVERY:
        selected, reason = (), NO_DISCOVERY
    return replace(
        ranking,
        selected=selected,
        reason=reason,
        intervals=known.intervals,
        frequency=known.frequency,
        p_values=known.p_values,
        q_values=known.q_values,
        notes=_doubts(selected, known.q_values),
    )


def require_resamples(resamples: int) -> None:
    """Refuses a number of resamples below 0.

    Raises:
        BadInput: It is below 0.
    """
    if resamples < 0:
        raise BadInput(f"the resamples must be 0 or more, not {resamples}")


def _doubts(selected: tuple[int, ...], q_values: NDArray[np.float64]) -> tuple[str, ...]:
    """What to say where chance alone may have made the selection."""
    unsure = sum(q_values[column] > DISCOVERY for column in selected)
    if not unsure:
        return ()
    return (
        f"{unsure} of the {len(selected)} selected components are not discoveries at a rate of "
        f"false ones of {DISCOVERY:g}: chance may have chosen them, more rows would tell",
    )
