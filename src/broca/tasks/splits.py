"""Cuts a task's items once, by seed, into `locate`, `confirm` and `report`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput

_SHARES = {"locate": 0.25, "confirm": 0.25, "report": 0.5}


@dataclass(frozen=True)
class Split:
    """Three disjoint, sorted tuples of positions among a task's documents.

    Attributes:
        locate: For the search.
        confirm: For choosing between candidates that the search proposes.
        report: For every number that is shown.
    """

    locate: tuple[int, ...]
    confirm: tuple[int, ...]
    report: tuple[int, ...]


def split_items(task: str, count: int, *, items: int, seed: int) -> Split:
    """Cuts `count` documents into three disjoint parts.

    A quarter goes to `locate`, a quarter to `confirm`, half to `report`; of the first two at most
    `items` are kept. Where a quarter holds fewer than `items`, the parts are smaller and the
    caller sees it in their lengths.

    Args:
        task: Name of the task; with the seed it decides the cut.
        count: Documents of the task.
        items: Most items of `locate` and of `confirm`.
        seed: Seed of the cut.

    Raises:
        BadInput: The task has too few documents to cut, or `items` is below 1.
    """
    if items < 1:
        raise BadInput(f"--items must be at least 1, not {items}")
    if count < 8:
        raise BadInput(
            f"task '{task}' has {count} items: at least 8 are needed to locate, confirm and report "
            "on different ones"
        )
    order = np.random.default_rng([seed, zlib.crc32(task.encode())]).permutation(count)
    first = int(count * _SHARES["locate"])
    second = first + int(count * _SHARES["confirm"])
    return Split(
        _sorted(order[:first][:items]),
        _sorted(order[first:second][:items]),
        _sorted(order[second:]),
    )


def _sorted(positions: np.ndarray) -> tuple[int, ...]:
    return tuple(int(position) for position in np.sort(positions))
