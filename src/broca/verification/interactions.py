"""Pairwise interactions of a few components: a small factorial design on fresh items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Execute, Plan
from broca.results.localization import Interaction

MOST = 20
"""Maximum number of components whose pairs are measured; 20 have 190 pairs."""


def require_count(count: int, components: int) -> None:
    """Refuses a number of components that has no pairs or too many.

    Args:
        count: Number of leading components; 0 for none.
        components: Number of components of the model.

    Raises:
        BadInput: The number is 1, negative, more than `MOST` or more than the model has.
    """
    most = min(MOST, components)
    if count and not 2 <= count <= most:
        raise BadInput(
            f"`interactions` {count} names no pairs: use 0 for none, or 2 to {most} leading "
            "components"
        )


def pairwise(
    names: Sequence[str],
    columns: Sequence[int],
    items: NDArray[np.intp],
    execute: Execute,
) -> tuple[Interaction, ...]:
    """Measures the interactions of all pairs of some components.

    Every item is measured intact, without each component, and without each pair:
    (1 + n + n (n - 1) / 2) x items rows for n components.

    Args:
        names: Names of all components, by column.
        columns: The components whose pairs are measured.
        items: Positions of the items, preferably items that were not used to select the components.
        execute: Measures a plan.

    Returns:
        The pairs, the strongest interaction first.
    """
    if not len(columns):
        return ()
    pairs = list(combinations(range(len(columns)), 2))
    masks = np.zeros((1 + len(columns) + len(pairs), len(names)), dtype=bool)
    for row, column in enumerate(columns, start=1):
        masks[row, column] = True
    for row, (first, second) in enumerate(pairs, start=1 + len(columns)):
        masks[row, [columns[first], columns[second]]] = True
    responses = execute(Plan.crossed(masks, items)).responses.reshape(len(masks), -1)
    changes = responses[1:] - responses[0]  # (masks - 1, items)
    alone, together = changes[: len(columns)], changes[len(columns) :]
    span = float(responses.max() - responses.min())
    interactions = []
    for (first, second), joint in zip(pairs, together, strict=True):
        beyond = joint - alone[first] - alone[second]
        interactions.append(
            Interaction(
                first=names[columns[first]],
                second=names[columns[second]],
                first_effect=float(alone[first].mean()),
                second_effect=float(alone[second].mean()),
                joint_effect=float(joint.mean()),
                interaction=float(beyond.mean()),
                ci=_interval(beyond, span),
            )
        )
    return tuple(sorted(interactions, key=lambda pair: -abs(pair.interaction)))


def _interval(values: NDArray[np.float64], span: float) -> tuple[float, float]:
    """Returns the 90 % interval of a mean by Student's t.

    Args:
        values: A value for each item.
        span: The range of responses. A pseudo-item that deviates by it gives the interval of equal
            values a width.
    """
    from scipy.stats import t

    count = len(values)
    spread = np.sqrt((values.var() * count + span**2) / (count + 1))
    half = float(t.ppf(0.95, count) * spread / np.sqrt(count))
    mean = float(values.mean())
    return mean - half, mean + half
