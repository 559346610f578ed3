"""Finds prompt prefixes that several rows of one mask share, and whether sharing saves work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from broca.engine.work import W
from broca.options import Switch

WORTH_SHARING = 0.25
"""Share of all tokens that must be saved before a prefix is shared by `auto`."""


@dataclass(frozen=True)
class PrefixGroup(Generic[W]):
    """Rows under one mask whose sequences begin alike.

    Attributes:
        prefix: The tokens that they share.
        members: The rows.
    """

    prefix: tuple[int, ...]
    members: tuple[W, ...]

    @property
    def saved(self) -> int:
        """Tokens that need not be read again."""
        return len(self.prefix) * (len(self.members) - 1)


def prefix_groups(work: Sequence[W], switch: Switch) -> tuple[list[PrefixGroup[W]], list[W]]:
    """Groups rows by mask and shared prefix.

    Within a mask there are two candidates: one prefix for all rows (a few-shot preamble), or one
    for each set of rows with the same context (the choices of an item). What saves more wins.

    Args:
        work: Rows of any masks.
        switch: Whether to share; `auto` does where enough tokens are saved.

    Returns:
        The groups, and the rows that share nothing.
    """
    if switch == "off":
        return [], list(work)
    by_mask: dict[tuple[int, int], list[W]] = {}
    for one in work:
        by_mask.setdefault((one.mask, one.donor), []).append(one)
    groups: list[PrefixGroup[W]] = []
    alone: list[W] = []
    for rows in by_mask.values():
        by_context: dict[tuple[int, ...], list[W]] = {}
        for one in rows:
            by_context.setdefault(one.tokens[: one.sharable], []).append(one)
        candidates = [[_group(rows)], [_group(same) for same in by_context.values()]]
        best = max(candidates, key=lambda option: sum(group.saved for group in option))
        saved = sum(group.saved for group in best)
        needed = WORTH_SHARING * sum(len(one.tokens) for one in rows) if switch == "auto" else 0
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
    """The rows with the longest prefix that they share."""
    first, last = min(one.tokens for one in rows), max(one.tokens for one in rows)
    limit = max(0, min(one.sharable for one in rows))
    shared = 0  # what the smallest and the largest share, all in between share too
    while shared < limit and first[shared] == last[shared]:
        shared += 1
    return PrefixGroup(first[:shared], tuple(rows))


def groups_that_fit(groups: Sequence[PrefixGroup[W]], rows: int) -> int:
    """How many groups from the head have no more members than fit one batch; at least one."""
    total = 0
    for count, group in enumerate(groups):
        total += len(group.members)
        if total > rows:
            return max(1, count)
    return len(groups)
