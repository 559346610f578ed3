"""Effects of components from random masks, with errors that hold for other items too.

The change of a row's response against the intact one is a sum of effects over the components that
its mask ablates, and noise. The effects come from least squares; items answer differently to the
same ablation, so errors are those of whole items (cluster-robust, Liang and Zeger, 1986). Two
models that answer the same rows are compared by the differences of their changes: what rows and
items have in common cancels.
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
"""Rows with random masks where no number is given, for each component."""

FEWEST_PER_COMPONENT = 2
"""With fewer the errors are those of chance."""

FEWEST_ITEMS = 10
"""With fewer the errors between items cannot be told."""

FEWEST_ROWS = 1000
"""Rows where no number is given, at least."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Effects of components and how sure they are.

    Attributes:
        values: The effects, `(components,)`.
        errors: Their standard errors, `(components,)`.
        freedom: Degrees of freedom of their t-distribution: items less one.
    """

    values: Floats
    errors: Floats
    freedom: int

    def intervals(self, level: float = 0.05) -> tuple[Floats, Floats]:
        """Lower and upper ends of the intervals, each of its own component."""
        reach = stats.t.ppf(1 - level / 2, self.freedom) * self.errors
        return self.values - reach, self.values + reach

    def p_values(self) -> Floats:
        """Two-sided p-values of no effect."""
        ratio = np.divide(
            np.abs(self.values), self.errors, out=np.zeros_like(self.values), where=self.errors > 0
        )
        ratio[(self.errors == 0) & (self.values != 0)] = np.inf
        p_values: Floats = 2 * stats.t.sf(ratio, self.freedom)
        return p_values


def row_count(rows: int | None, components: int) -> int:
    """Rows with random masks that each model is measured on, for each task.

    Raises:
        BadInput: They are too few for as many components.
    """
    if rows is None:
        return max(FEWEST_ROWS, ROWS_PER_COMPONENT * components)
    if rows < FEWEST_PER_COMPONENT * components + FEWEST_ITEMS:
        raise BadInput(
            f"`rows` {rows} is too few to compare {components} components: give at least "
            f"{FEWEST_PER_COMPONENT * components + FEWEST_ITEMS}, or none for the default"
        )
    return rows


def estimate(masks: Bools, changes: Floats, items: NDArray[np.intp]) -> Estimates:
    """Estimates the effect of every component on a response.

    Args:
        masks: Ablated components of every row, `(rows, components)`.
        changes: Response minus that of the intact model on the same item, or the difference of
            two such changes, `(rows,)`.
        items: Item of every row, `(rows,)`.

    Raises:
        BadInput: There are fewer than ten items, or the masks cannot tell all components apart.
    """
    kinds, cluster = np.unique(items, return_inverse=True)
    if len(kinds) < FEWEST_ITEMS:
        raise BadInput(
            f"{len(kinds)} items are too few to say what holds for others: give at least "
            f"{FEWEST_ITEMS} in `items`"
        )
    design = np.column_stack([np.ones(len(masks)), masks.astype(np.float64)])
    rows, columns = design.shape
    if np.linalg.matrix_rank(design) < columns:
        raise BadInput(f"{rows} rows cannot tell {columns - 1} components apart: give more `rows`")
    inverse = linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ changes)
    residuals = changes - design @ coefficients
    scores = np.zeros((len(kinds), columns))
    np.add.at(scores, cluster, design * residuals[:, None])
    influence = scores @ inverse  # (items, components + 1)
    correction = len(kinds) / (len(kinds) - 1) * (rows - 1) / (rows - columns)
    errors = np.sqrt(correction * (influence**2).sum(axis=0))
    return Estimates(coefficients[1:], errors[1:], len(kinds) - 1)


def discoveries(p_values: Floats) -> Floats:
    """P-values corrected for the rate of false discoveries (Benjamini and Hochberg, 1995)."""
    q_values: Floats = stats.false_discovery_control(p_values, method="bh")
    return q_values
