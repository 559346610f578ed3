"""The work of a job and its batches: padded rows, or suffixes on prefixes that are read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from broca.engine.budget import Budget
from broca.engine.stop_rule import StopRule
from broca.errors import BadLogits
from broca.models import ActiveGates, GatedModel, GatePoint
from broca.models.caches import continuations, left_padded
from broca.options.running import EngineOptions, Switch
from broca.tasks.items import Request

WORTH_SHARING = 0.25
"""Minimum share of saved tokens for which `auto` shares a prefix."""

Donors = Mapping[GatePoint, Tensor]
"""Activations that replace ablated ones, `(donors, width)` for each gate point."""


@dataclass(frozen=True, eq=False)
class Work:
    """A sequence to read under a mask, or to continue.

    Attributes:
        mask: Row of the gates.
        donor: Row of the replacement activations.
        tokens: Context and continuation without its last token; of a generation, its prompt.
        request: The request, or the first of several.
        targets: Position of each request, and the continuation that the last tokens predict; of a
            generation, its position and any token.
    """

    mask: int
    donor: int
    tokens: tuple[int, ...]
    request: Request
    targets: list[tuple[int, tuple[int, ...]]]

    @property
    def position(self) -> int:
        """Position of the (first) request."""
        return self.targets[0][0]

    @property
    def length(self) -> int:
        """Maximum number of tokens in a batch."""
        return len(self.tokens) + self.request.max_new_tokens

    @property
    def target(self) -> int:
        """Number of tokens of the longest target: last positions whose logits are needed."""
        return max(len(target) for _, target in self.targets)


def work_of(
    requests: Sequence[Sequence[Request]], masks: Sequence[int], donors: Sequence[int]
) -> tuple[list[Work], list[Work]]:
    """Sorts the requests of rows into readings and decodings, and numbers them in their order.

    Requests that read the same tokens under the same gates and donors share a reading.

    Args:
        requests: The requests of every row.
        masks: Row of the gates of every row.
        donors: Row of the donors of every row.
    """
    readings: dict[tuple[int, int, bool, tuple[int, ...]], Work] = {}
    decodings: list[Work] = []
    tokens_of: dict[int, tuple[int, ...]] = {}  # the same request occurs under many masks
    position = 0
    for of_row, mask, donor in zip(requests, masks, donors, strict=True):
        for request in of_row:
            if request.kind == "loglikelihood":
                tokens = tokens_of.get(id(request))
                if tokens is None:
                    tokens = tokens_of[id(request)] = (*request.context, *request.continuation)[:-1]
                key = (mask, donor, request.paired, tokens)
                reading = readings.setdefault(key, Work(mask, donor, tokens, request, []))
                reading.targets.append((position, request.continuation))
            else:
                decodings.append(Work(mask, donor, request.context, request, [(position, (0,))]))
            position += 1
    return list(readings.values()), decodings


def longest_first(work: Sequence[Work]) -> list[Work]:
    """Returns the work by decreasing length: batches have little padding, memory peaks early."""
    return sorted(work, key=lambda row: row.length, reverse=True)


class Lane:
    """A model with its token budget: the engine's, or a copy around the same weights.

    Args:
        model: The model.
        options: Which work is shared, and the size of batches.
        stop: Decides when a generation ends.
        donors: Activations that replace ablated ones.
    """

    def __init__(
        self, model: GatedModel, options: EngineOptions, stop: StopRule, donors: Donors
    ) -> None:
        self.model, self.options, self.stop, self.donors = model, options, stop, donors
        self.budget = Budget(model, options.token_budget)
        self.tokens = 0
        """Number of tokens that were read or generated so far, padding excluded."""

    def copy(self) -> Lane:
        """Returns a lane on a copy of the model around the same weights."""
        model = self.model.copy()
        points = zip(self.model.points, model.points, strict=True)
        donors = {copied: self.donors[point] for point, copied in points if point in self.donors}
        return Lane(model, self.options, self.stop, donors)

    def gates(self, masks: Tensor, work: Sequence[Work]) -> ActiveGates:
        """Returns the gates and replacements of rows; `masks` are `(masks, components)`."""
        rows = [row.donor for row in work]
        replacement = {point: values[rows] for point, values in self.donors.items()}
        return self.model.gates(masks[[row.mask for row in work]], replacement=replacement)


@dataclass(frozen=True)
class PrefixGroup:
    """Rows under the same mask with a common prefix.

    Attributes:
        prefix: The common tokens.
        members: The rows.
    """

    prefix: tuple[int, ...]
    members: Sequence[Work]

    @property
    def saved(self) -> int:
        """Number of tokens that need not be read again."""
        return len(self.prefix) * (len(self.members) - 1)


def prefix_groups(
    model: GatedModel, work: Sequence[Work], switch: Switch
) -> tuple[list[PrefixGroup], list[Work]]:
    """Groups rows by mask and shared prefix, where the model was proved to share prefixes.

    Within a mask there are two candidates: one prefix for all rows (a few-shot preamble), or one
    for each set of rows with the same context (the choices of an item). The candidate that saves
    more is used.

    Args:
        model: The model.
        work: Rows of any masks.
        switch: Whether to share; `auto` shares if enough tokens are saved.

    Returns:
        The groups, and the rows without a shared prefix.
    """
    if switch == "off":
        return [], list(work)
    by_mask: dict[tuple[int, int], list[Work]] = {}
    for row in work:
        by_mask.setdefault((row.mask, row.donor), []).append(row)
    groups: list[PrefixGroup] = []
    alone: list[Work] = []
    for rows in by_mask.values():
        by_context: dict[tuple[int, ...], list[Work]] = {}
        for row in rows:
            by_context.setdefault(row.tokens[: len(row.tokens) - row.target], []).append(row)
        candidates = [[_group(rows)], [_group(same) for same in by_context.values()]]
        best = max(candidates, key=lambda option: sum(group.saved for group in option))
        saved = sum(group.saved for group in best)
        if saved and not model.sharing(max(row.length for row in rows)).prefixes:
            saved = 0
        needed = WORTH_SHARING * sum(len(row.tokens) for row in rows) if switch == "auto" else 0
        if saved <= needed:
            alone += rows
            continue
        groups += [group for group in best if group.saved]
        alone += [row for group in best if not group.saved for row in group.members]
    return sorted(groups, key=lambda group: len(group.prefix), reverse=True), alone


def _group(rows: Sequence[Work]) -> PrefixGroup:
    """Returns the rows with their longest common prefix."""
    limit = max(0, min(len(row.tokens) - row.target for row in rows))
    return PrefixGroup(common_prefix([row.tokens for row in rows])[:limit], tuple(rows))


def common_prefix(sequences: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the tokens with which all sequences begin."""
    first, last = min(sequences), max(sequences)  # in sorted order, all share that of these two
    pairs = zip(first, last, strict=False)
    return first[: next((place for place, (a, b) in enumerate(pairs) if a != b), len(first))]


def groups_that_fit(budget: Budget, groups: Sequence[PrefixGroup]) -> tuple[int, int]:
    """Returns how many first groups fit a batch together (>= 1), and its most rows."""
    prefix = len(groups[0].prefix)
    suffix = max(row.length - len(group.prefix) for group in groups for row in group.members)
    rows = budget.rows(suffix, cached=prefix)
    totals = accumulate(len(group.members) for group in groups)
    return max(1, sum(total <= rows for total in totals)), rows


@dataclass(frozen=True)
class Batch:
    """Rows ready for a forward pass.

    Attributes:
        work: Work of each row.
        tokens: New tokens, `(rows, new)`.
        attention: 1 for tokens and 0 for padding, `(rows, past + new)`.
        cache: Keys and values of the `past` tokens; None without past tokens.
        gates: Gates of the rows.
        read: Number of tokens of the batch, padding excluded.
    """

    work: tuple[Work, ...]
    tokens: Tensor
    attention: Tensor
    cache: Any | None
    gates: ActiveGates
    read: int


def plain_batch(lane: Lane, masks: Tensor, work: Sequence[Work]) -> Batch:
    """Left-pads whole sequences."""
    tokens, attention = left_padded([row.tokens for row in work], device=lane.model.device)
    read = sum(len(row.tokens) for row in work)
    return Batch(tuple(work), tokens, attention, None, lane.gates(masks, work), read)


def shared_batches(
    lane: Lane, masks: Tensor, groups: Sequence[PrefixGroup], *, rows: int
) -> Iterator[Batch]:
    """Reads each group's prefix once and yields batches of the suffixes.

    Args:
        lane: The model.
        masks: Gates of every mask, `(masks, components)`.
        groups: Groups whose prefixes are read together.
        rows: Maximum number of rows of a batch.
    """
    model = lane.model
    prefixes, attention = left_padded([group.prefix for group in groups], device=model.device)
    with lane.gates(masks, [group.members[0] for group in groups]):
        _, cache = model.forward(prefixes, attention, keep=[0] * len(groups), use_cache=True)
    lengths = [len(group.prefix) for group in groups]
    read = sum(lengths)
    members = [(index, row) for index, group in enumerate(groups) for row in group.members]
    sequences = [(index, row.tokens) for index, row in members]
    for chunk, tokens, attention, past in continuations(
        cache, lengths, sequences, rows=rows, device=model.device
    ):
        work = tuple(members[member][1] for member in chunk)
        new = sum(len(members[m][1].tokens) - lengths[members[m][0]] for m in chunk)
        yield Batch(work, tokens, attention, past, lane.gates(masks, work), read + new)
        read = 0


def require_finite(logits: Tensor, rows: Sequence[int]) -> None:
    """Refuses NaN and infinite logits; those of padded vocabulary may be -inf.

    Args:
        logits: Logits, `(rows, positions, vocabulary)`.
        rows: Number of every row (or of its first request), for the message.

    Raises:
        BadLogits: Logits are NaN or +inf, or all are -inf; the message names the first faulty row.
    """
    # the largest value of every position: NaN if any is, without a copy of the logits
    finite = torch.isfinite(logits.amax(2)).all(1)
    if not bool(finite.all()):
        row = rows[int((~finite).nonzero()[0, 0])]
        raise BadLogits(
            f"the model returned NaN or infinite logits for request {row}: its weights or its "
            "number format are at fault; try `dtype` float32",
            row=row,
        )
