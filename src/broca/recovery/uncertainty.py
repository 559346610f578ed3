"""Uncertainty of effects: intervals, p-values, false discoveries, additivity, interactions."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from broca.errors import BadInput, first_line
from broca.measurement import Bools, Floats, Ints
from broca.recovery import coefficients
from broca.results.localization import AdditivityInfo, Interaction, InteractionInfo

RESAMPLES = 100
"""Number of resamples by default."""
LEVEL = 0.9
"""Probability that an interval holds the effect."""
DISCOVERY = 0.1
"""Allowed share of false discoveries among discoveries."""

_DOUBT = 0.05
"""Probability that any component counts as sure if none has an effect (Bonferroni)."""
_NOTHING = 1e-18
"""Share of the variance that counts as rounding."""
_ROUNDING = 1e-12
"""Largest difference of equal responses by rounding, as a share of the responses."""
_FEWEST = 8
"""Minimum number of masks for estimates."""
_FOLDS = 5
_FEWEST_TO_PREDICT = 20
"""Minimum number of masks for additivity: a fold then has four."""
_STRONG, _PARTNERS = 10, 100
"""Number of components of which every pair has one, and of which its other one is."""
_FEWEST_TOGETHER = 10
"""Minimum number of masks that ablate all components of an interaction that is tried."""


def uncertainty(
    masks: Bools, responses: Floats, recovery: Any, *, k: int, seed: int, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Estimates every effect beside the sure components, and resamples masks.

    A component is sure if chance gives any component an effect this clear in fewer than one of 20
    cases. Sure components are selected one after another, the clearest effect beside the earlier
    ones first, while there are four masks for each. The estimate of a component is its coefficient
    in the least squares of the responses on itself and the sure components; interval and p-value
    are Student's. The estimates hold because masks are drawn at random: omitted components are
    nearly uncorrelated with included ones.

    The rows of a mask share its ablation, so that masks and not rows are resampled. Each resample
    fits the recovery again, with the penalty chosen on all masks if the recovery has one
    (`penalty_`).

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: The fitted recovery.
        k: Maximum number of components that are selected.
        seed: Seed of the resamples.
        resamples: Number of resamples.

    Returns:
        Statistics of every component, `(components,)`, by their names:

        - `intervals`: 90 % interval without shrinkage, `(components, 2)`; NaN without an estimate.
        - `p_values`: one-sided p-value of no harm; 1 without an estimate.
        - `q_values`: p-values after the correction of Benjamini and Hochberg: the share of false
          discoveries among this component and those with smaller p-values.
        - `frequency`: share of resamples with the component among the k most harmful; left out
          without resamples.
    """
    from scipy import stats
    from sklearn.base import clone

    matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
    centered, differences = matrix - matrix.mean(axis=0), y - y.mean()
    differences *= np.abs(differences).max() > _ROUNDING * np.abs(y).max()
    sure: list[int] = []
    while True:
        estimates, intervals, p_values = _least_squares(
            centered, differences, np.array(sorted(sure), dtype=np.intp)
        )
        two_sided = 2 * np.minimum(p_values, 1 - p_values)
        two_sided[[*sure, *np.flatnonzero(~np.isfinite(intervals[:, 0]))]] = 1.0
        two_sided[estimates == 0] = 1.0  # an effect of zero is not clear
        clearest = int(np.argmin(two_sided))
        if two_sided[clearest] * len(two_sided) > _DOUBT or 4 * (len(sure) + 1) > len(y):
            break
        sure.append(clearest)
    settled = clone(recovery)
    if getattr(recovery, "penalty_", None) is not None and "penalty" in settled.get_params():
        settled.set_params(penalty=recovery.penalty_)
    rng = np.random.default_rng([seed, 0xB007])
    selected = np.zeros(matrix.shape[1])
    for _ in range(resamples):
        rows = rng.integers(len(y), size=len(y))
        effects = coefficients(settled, matrix[rows], y[rows], name="of a resample")
        first = np.argsort(effects, kind="stable")[:k]
        selected[first[effects[first] < 0]] += 1
    return {
        "intervals": intervals,
        "p_values": p_values,
        "q_values": np.asarray(stats.false_discovery_control(p_values), dtype=float),
        **({"frequency": selected / resamples} if resamples else {}),
    }


def _least_squares(centered: Floats, target: Floats, sure: Ints) -> tuple[Floats, Floats, Floats]:
    """Fits least squares of the responses on each component and the sure ones.

    Returns:
        Estimates, intervals, and p-values of no harm.
    """
    from scipy import stats

    rows, count = centered.shape
    estimates, errors = np.zeros(count), np.full(count, np.nan)
    freedom = np.full(count, max(1, rows - 2 - len(sure)))
    freedom[sure] += 1
    # residuals of the responses and of every other column after the sure ones
    basis = np.linalg.qr(centered[:, sure])[0] if len(sure) else np.zeros((rows, 0))
    residual = centered - basis @ (basis.T @ centered)
    unexplained = target - basis @ (basis.T @ target)
    remaining = unexplained @ unexplained
    weight = (residual**2).sum(axis=0)
    others = np.setdiff1d(np.flatnonzero(weight > 1e-8), sure)
    if rows >= _FEWEST and target.std() > 0:
        estimates[others] = residual[:, others].T @ unexplained / weight[others]
        squares = remaining - estimates[others] ** 2 * weight[others]
        errors[others] = np.sqrt(np.maximum(squares, 0) / freedom[others] / weight[others])
        if len(sure):
            inverse = np.linalg.pinv(centered[:, sure].T @ centered[:, sure])
            estimates[sure] = inverse @ centered[:, sure].T @ target
            # rows without a component that matters vary more: errors hold for unequal noise
            influence = unexplained[:, None] * (centered[:, sure] @ inverse)
            errors[sure] = np.sqrt(rows / freedom[sure] * (influence**2).sum(axis=0))
    total = target @ target
    if total > 0 and remaining <= _NOTHING * total:  # the sure ones explain everything
        estimates[others], errors[others] = 0.0, 0.0
    finite = np.isfinite(errors)
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = np.where(finite, stats.t.cdf(estimates / errors, freedom), 1.0)
    p_values[finite & (errors == 0)] = (estimates[finite & (errors == 0)] >= 0).astype(float)
    return estimates, np.stack([estimates - half, estimates + half], axis=1), p_values


def additivity(
    masks: Bools, responses: Floats, recovery: Any, *, seed: int
) -> AdditivityInfo | None:
    """Predicts every mask from the masks of the other four fifths.

    The unexplained share contains the noise of the rows and the interactions of components: the
    fewer rows a mask has, the lower the explained share.

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: A recovery; each fold fits a copy and chooses its own penalty.
        seed: Seed of the folds.

    Returns:
        None with fewer than 20 masks or if all responses are equal.
    """
    from scipy import stats
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    y = np.asarray(responses, dtype=float)
    if len(y) < _FEWEST_TO_PREDICT or y.std() == 0:
        return None
    fold = np.random.default_rng([seed, 0xADD]).permutation(len(y)) % _FOLDS
    try:
        predicted = cross_val_predict(recovery, masks, y, cv=PredefinedSplit(fold))
    except Exception as error:  # an estimator of others may raise anything
        raise BadInput(
            f"the recovery predicts nothing: {first_line(error)}: use another"
        ) from error
    explained = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    # without any effect the predictions differ only by the folds' means: they predict nothing
    correlation = stats.spearmanr(predicted, y).statistic if np.ptp(predicted) > 0 else 0.0
    return AdditivityInfo(float(explained), float(correlation), len(y))


def interactions(
    masks: Bools, responses: Floats, recovery: Any, names: Sequence[str], *, seed: int
) -> InteractionInfo:
    """Finds interactions of components that matter, and what they explain on held-out masks.

    Products of columns are added to the least squares of what the recovery leaves, one after
    another, the clearest first, while chance gives any of those tried so far a coefficient this
    clear in fewer than one of 20 cases: at first pairs of one of the ten components that are most
    correlated with the responses and another of the first hundred, then, from the start, what was
    found and the products that have one component more, until these add nothing. Each fifth of the
    masks is predicted from the others, which choose their products anew; what most of them did not
    choose is not named.

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: A recovery; each fold fits a copy.
        names: Names of the components.
        seed: Seed of the folds.

    Raises:
        BadInput: No such pair was ablated together in ten masks.
    """
    from sklearn.base import clone

    y = np.asarray(responses, dtype=float)
    if not _pairs(masks, y)[1]:
        raise BadInput(
            f"no two components that matter were ablated together in {_FEWEST_TOGETHER} masks: "
            "`interactions` need a run of a method with random masks, and more `rows`"
        )
    fold = np.random.default_rng([seed, 0xADD]).permutation(len(y)) % _FOLDS
    errors, times = np.zeros(2), Counter[tuple[int, ...]]()
    for number in range(1 + _FOLDS):  # the last fit has all masks
        known, left_out = fold != number, fold == number
        rest = y - clone(recovery).fit(masks[known], y[known]).predict(masks)
        terms = _chosen(masks[known], y[known], rest[known])
        if number == _FOLDS:
            terms = [term for term in terms if 2 * times[term] > _FOLDS]
        times.update(terms)
        members = sorted({column for term in terms for column in term})
        matrix = _with_products(masks, members, terms)
        effects = np.linalg.lstsq(matrix[known], rest[known], rcond=None)[0]
        for kind, left in enumerate((rest, rest - matrix @ effects)):
            errors[kind] += (left[left_out] ** 2).sum()
    additive, explained = 1 - errors / max(((y - y.mean()) ** 2).sum(), np.finfo(float).tiny)
    found = [
        Interaction(tuple(names[column] for column in term), float(effect), int(together.sum()))
        for term, effect, together in zip(
            terms, effects[1 + len(members) :], _products(masks, terms), strict=True
        )
    ]
    found.sort(key=lambda line: -abs(line.effect))
    return InteractionInfo(float(additive), float(explained), tuple(found))


Terms = list[tuple[int, ...]]


def _pairs(masks: Bools, y: Floats) -> tuple[list[int], Terms]:
    """Returns the components that are tried, and their pairs."""
    centered = masks - masks.mean(axis=0)
    spread = np.maximum(centered.std(axis=0), np.finfo(float).tiny)
    order = np.argsort(-np.abs(centered.T @ (y - y.mean())) / spread, kind="stable").tolist()
    first, others = order[:_STRONG], order[: min(_PARTNERS, max(_STRONG, len(y) // 10))]
    return others, _tried(masks, {frozenset([one, other]) for one in first for other in others})


def _chosen(masks: Bools, y: Floats, rest: Floats) -> Terms:
    """Returns the interactions that matter, of all orders."""
    others, tried = _pairs(masks, y)
    found, count, order = Terms(), 0, 1
    while tried:
        count += len(tried)
        found = _forward(masks, rest, others, tried, of=count)
        if max(map(len, found), default=1) <= order:
            break
        order += 1
        longer = {frozenset([*term, other]) for term in found for other in others}
        tried = _tried(masks, longer)
    return found


def _tried(masks: Bools, sets: set[frozenset[int]]) -> Terms:
    """Returns the sets of several columns that enough masks ablate."""
    terms = sorted(tuple(sorted(one)) for one in sets if len(one) > 1)
    counts = (together.sum() for together in _products(masks, terms))
    return [term for term, count in zip(terms, counts, strict=True) if count >= _FEWEST_TOGETHER]


def _forward(masks: Bools, rest: Floats, columns: list[int], tried: Terms, *, of: int) -> Terms:
    """Returns the terms that are significant beside columns and earlier terms, of some tests."""
    from scipy import stats

    products, terms = np.column_stack(_products(masks, tried)).astype(float), Terms()
    while True:
        basis = np.linalg.qr(_with_products(masks, columns, terms))[0]
        left, own = rest - basis @ (basis.T @ rest), products - basis @ (basis.T @ products)
        lengths, free = (own**2).sum(axis=0), len(rest) - basis.shape[1] - 1
        gains = np.where(lengths > 1e-6, (own.T @ left) ** 2 / np.maximum(lengths, 1e-6), 0)
        best = int(np.argmax(gains))
        unexplained = max(float(left @ left - gains[best]), np.finfo(float).tiny)
        p = stats.f.sf(free * gains[best] / unexplained, 1, free) if free > 0 else 1.0
        if not p * of < _DOUBT:
            return terms
        terms.append(tried[best])


def _products(masks: Bools, terms: Terms) -> list[Bools]:
    """Returns for each term whether a mask ablates all its components, `(masks,)`."""
    return [np.logical_and.reduce(masks[:, term], axis=1) for term in terms]


def _with_products(masks: Bools, columns: list[int], terms: Terms) -> Floats:
    """Returns a column of ones, those of components, and those of products."""
    ones = np.ones((len(masks), 1))
    return np.column_stack([ones, masks[:, columns], *_products(masks, terms)])
