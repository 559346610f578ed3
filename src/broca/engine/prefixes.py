"""Finds prompt prefixes that rows of the same mask share, if sharing saves work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from broca.engine.work import W
from broca.options import Switch

WORTH_SHARING = 0.25
"""Minimum share of saved tokens for which `auto` shares a prefix."""


@dataclass(frozen=True)
class PrefixGroup(Generic[W]):
    """Rows under the same mask with a common prefix.

    Attributes:
        prefix: The common tokens.
        members: The rows.
    """

    prefix: tuple[int, ...]
    members: tuple[W, ...]

    @property
    def saved(self) -> int:
        """Number of tokens that need not be read again."""
        return len(self.prefix) * (len(self.members) - 1)


def prefix_groups(
    work: Sequence[W], switch: Switch, shares: Callable[[int], bool] = lambda length: True
) -> tuple[list[PrefixGroup[W]], list[W]]:
    """Groups rows by mask and shared prefix.

    Within a mask there are two candidates: one prefix for all rows (a few-shot preamble), or one
    for each set of rows with the same context (the choices of an item). The candidate that saves
    more is used.

    Args:
        work: Rows of any masks.
        switch: Whether to share; `auto` shares if enough tokens are saved.
        shares: Whether the model was proved to share prefixes of rows of some length.

    Returns:
        The groups, and the rows without a shared prefix.
    """
    if switch == "off":
        return [], list(work)
    by_mask: dict[tuple[int, int], list[W]] = {}
    for row in work:
        by_mask.setdefault((row.mask, row.donor), []).append(row)
    groups: list[PrefixGroup[W]] = []
    alone: list[W] = []
    for rows in by_mask.values():
        by_context: dict[tuple[int, ...], list[W]] = {}
        for row in rows:
            by_context.setdefault(row.tokens[: row.sharable], []).append(row)
        candidates = [[_group(rows)], [_group(same) for same in by_context.values()]]
        best = max(candidates, key=lambda option: sum(group.saved for group in option))
        saved = sum(group.saved for group in best)
        if saved and not shares(max(row.length for row in rows)):
            saved = 0
        needed = WORTH_SHARING * sum(len(row.tokens) for row in rows) if switch == "auto" else 0
        if saved <= needed:
            alone += rows
            continue
        for group in best:
            if group.saved:
                groups.append(group)
            else:
                alone += group.members
    return groups, alone


def _group(rows: Sequence[W]) -> PrefixGroup[W]:
    """Returns the rows with their longest common prefix."""
    first, last = min(row.tokens for row in rows), max(row.tokens for row in rows)
    limit = max(0, min(row.sharable for row in rows))
    shared = 0  # in sorted order, all share the prefix of the first and the last
    while shared < limit and first[shared] == last[shared]:
        shared += 1
    return PrefixGroup(first[:shared], tuple(rows))


def groups_that_fit(groups: Sequence[PrefixGroup[W]], rows: int) -> int:
    """Returns how many first groups fit one batch together; at least one."""
    total = 0
    for count, group in enumerate(groups):
        total += len(group.members)
        if total > rows:
            return max(1, count)
    return len(groups)
