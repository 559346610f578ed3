"""Splits a task's items by seed into `locate`, `confirm` and `report`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput

_SHARES = {"locate": 0.25, "confirm": 0.25, "report": 0.5}
_FEWEST = 8


@dataclass(frozen=True)
class SplitPart:
    """The items of a task of a group.

    Attributes:
        name: Name of the task; it determines the split together with the seed.
        scored: Positions of the scored items.
        located: Positions of items from another official split; empty without one.
    """

    name: str
    scored: list[int]
    located: list[int]


@dataclass(frozen=True)
class Split:
    """Three disjoint, sorted tuples of positions among a task's items.

    Attributes:
        locate: Items of the search.
        confirm: Items for the choice between candidates of the search.
        report: Items of all reported numbers.
    """

    locate: tuple[int, ...]
    confirm: tuple[int, ...]
    report: tuple[int, ...]


def split_parts(task: str, parts: Sequence[SplitPart], *, items: int, seed: int) -> Split:
    """Splits the items of every task of a group into three disjoint parts.

    A quarter goes to `locate`, a quarter to `confirm` and half to `report`; each of the first two
    keeps at most `items`, and fewer if a quarter has fewer. Items from another official split go to
    `locate` and `confirm`, half each; all others of that task then go to `report`.

    Args:
        task: Name of the group.
        parts: Its tasks.
        items: Maximum number of items of `locate` and of `confirm`, over all tasks.
        seed: Seed of the split.

    Raises:
        BadInput: There are too few items, or `items` is below 1.
    """
    if items < 1:
        raise BadInput(f"`items` must be at least 1, not {items}")
    scored = sum(len(part.scored) for part in parts)
    if scored < _FEWEST:
        raise BadInput(
            f"task '{task}' has {scored} items: at least {_FEWEST} are needed to locate, confirm "
            "and report on different ones"
        )
    locate: list[int] = []
    confirm: list[int] = []
    report: list[int] = []
    for part in parts:
        rng = np.random.default_rng([seed, zlib.crc32(part.name.encode())])
        order = rng.permutation(np.asarray(part.located or part.scored, dtype=np.intp)).tolist()
        if part.located:
            first, second = len(order) // 2, len(order)
            report += part.scored
        else:
            first = int(len(order) * _SHARES["locate"])
            second = first + int(len(order) * _SHARES["confirm"])
            report += order[second:]
        locate += order[:first]
        confirm += order[first:second]
    if len(parts) > 1:
        rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
        locate, confirm = rng.permutation(locate).tolist(), rng.permutation(confirm).tolist()
    if not locate or not confirm:
        raise BadInput(
            f"task '{task}' has {len(locate) + len(confirm)} items to locate and confirm on: at "
            "least one of each is needed"
        )
    parts_of_items = locate[:items], confirm[:items], report
    return Split(*(tuple(sorted(positions)) for positions in parts_of_items))
