"""Estimates effects of components from random masks, with errors that generalize over items.

The change of a row's response from the intact response is the sum of the effects of its ablated
components, plus noise. The effects are estimated by least squares. Effects differ between items, so
that errors are clustered by item (cluster-robust, Liang and Zeger, 1986). Two models on the same
rows are compared by the differences of their changes, in which common effects of rows and items
cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

from broca.errors import BadInput

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROWS_PER_COMPONENT = 6
"""Default number of rows with random masks for each component."""

FEWEST_PER_COMPONENT = 2
"""Minimum number of rows for each component."""

FEWEST_ITEMS = 10
"""Minimum number of items for errors between items."""

FEWEST_ROWS = 1000
"""Minimum default number of rows."""


@dataclass(frozen=True, eq=False)
class EffectEstimates:
    """Effects of components with their standard errors.

    Attributes:
        values: The effects, `(components,)`.
        errors: Standard errors of the effects, `(components,)`.
        freedom: Degrees of freedom of their t-distribution: the number of items minus one.
    """

    values: Floats
    errors: Floats
    freedom: int

    def intervals(self, level: float = 0.05) -> tuple[Floats, Floats]:
        """Returns lower and upper ends of the intervals, without correction over components."""
        reach = stats.t.ppf(1 - level / 2, self.freedom) * self.errors
        return self.values - reach, self.values + reach

    def p_values(self) -> Floats:
        """Returns the two-sided p-values of no effect."""
        ratio = np.divide(
            np.abs(self.values), self.errors, out=np.zeros_like(self.values), where=self.errors > 0
        )
        ratio[(self.errors == 0) & (self.values != 0)] = np.inf
        p_values: Floats = 2 * stats.t.sf(ratio, self.freedom)
        return p_values


def row_count(rows: int | None, components: int) -> int:
    """Returns the number of rows with random masks for each model and task.

    Raises:
        BadInput: The rows are too few for the components.
    """
    if rows is None:
        return max(FEWEST_ROWS, ROWS_PER_COMPONENT * components)
    if rows < FEWEST_PER_COMPONENT * components + FEWEST_ITEMS:
        raise BadInput(
            f"`rows` {rows} is too few to compare {components} components: give at least "
            f"{FEWEST_PER_COMPONENT * components + FEWEST_ITEMS}, or none for the default"
        )
    return rows


def estimate_effects(masks: Bools, changes: Floats, items: NDArray[np.intp]) -> EffectEstimates:
    """Estimates the effect of every component on a response.

    Args:
        masks: Ablated components of every row, `(rows, components)`.
        changes: Response minus the intact response of the same item, or the difference of two such
            changes, `(rows,)`.
        items: Item of every row, `(rows,)`.

    Raises:
        BadInput: There are fewer than ten items, or the masks do not separate all components.
    """
    kinds, cluster = np.unique(items, return_inverse=True)
    if len(kinds) < FEWEST_ITEMS:
        raise BadInput(
            f"{len(kinds)} items are too few to generalize over items: give at least "
            f"{FEWEST_ITEMS} in `items`"
        )
    design = np.column_stack([np.ones(len(masks)), masks.astype(np.float64)])
    rows, columns = design.shape
    if np.linalg.matrix_rank(design) < columns:
        raise BadInput(f"{rows} rows do not separate {columns - 1} components: give more `rows`")
    inverse = linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ changes)
    residuals = changes - design @ coefficients
    scores = np.zeros((len(kinds), columns))
    np.add.at(scores, cluster, design * residuals[:, None])
    influence = scores @ inverse  # (items, components + 1)
    correction = len(kinds) / (len(kinds) - 1) * (rows - 1) / (rows - columns)
    errors = np.sqrt(correction * (influence**2).sum(axis=0))
    return EffectEstimates(coefficients[1:], errors[1:], len(kinds) - 1)


def discoveries(p_values: Floats) -> Floats:
    """Returns p-values corrected for the false discovery rate (Benjamini and Hochberg, 1995)."""
    q_values: Floats = stats.false_discovery_control(p_values, method="bh")
    return q_values
