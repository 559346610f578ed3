"""Sorts work by length and cuts it into left-padded batches under a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Work = TypeVar("Work")


def longest_first(work: Sequence[Work], length: Callable[[Work], int]) -> list[Work]:
    """Returns the work with the longest first: batches pad little, and memory peaks at once."""
    return sorted(work, key=length, reverse=True)


def next_batch(work: Sequence[Work], length: Callable[[Work], int], *, budget: int) -> int:
    """Returns how many pieces from the head of sorted work fill one batch.

    Args:
        work: Pieces, longest first; not empty.
        length: Tokens that a piece needs.
        budget: Most tokens of a batch, padding included.

    Returns:
        A number of pieces, at least 1.
    """
    return min(len(work), max(1, budget // max(1, length(work[0]))))


def left_padded(rows: Sequence[Sequence[int]], *, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns tokens `(rows, longest)` padded with 0 on the left, and their attention mask."""
    longest = max(len(row) for row in rows)
    tokens = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    for index, row in enumerate(rows):
        tokens[index, longest - len(row) :] = row
        mask[index, longest - len(row) :] = 1
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)
