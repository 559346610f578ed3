"""Prepares batches: padded rows, or suffixes after prefixes that are read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from torch import Tensor

from broca.engine.budget import Budget
from broca.engine.prefixes import PrefixGroup
from broca.engine.work import Masking, W
from broca.models import ActiveGates, GatedModel, GatePoint, captured
from broca.models.caches import continuations, left_padded


@dataclass(frozen=True)
class Batch(Generic[W]):
    """Rows ready for a forward pass.

    Attributes:
        work: Work of each row.
        tokens: New tokens, `(rows, new)`.
        attention: 1 for tokens and 0 for padding, `(rows, past + new)`.
        cache: Keys and values of the `past` tokens; None without past tokens.
        gates: Gates of the rows.
        read: Number of tokens of the batch, padding excluded.
    """

    work: tuple[W, ...]
    tokens: Tensor
    attention: Tensor
    cache: Any | None
    gates: ActiveGates
    read: int


def plain_batch(model: GatedModel, work: Sequence[W], masking: Masking) -> Batch[W]:
    """Left-pads whole sequences."""
    tokens, attention = left_padded([row.tokens for row in work], device=model.device)
    gates, replacement = masking.of(work)
    return Batch(
        tuple(work),
        tokens,
        attention,
        None,
        model.gates(gates, replacement=replacement),
        sum(len(row.tokens) for row in work),
    )


def shared_batches(
    model: GatedModel, groups: Sequence[PrefixGroup[W]], masking: Masking, *, rows: int
) -> Iterator[Batch[W]]:
    """Reads each group's prefix once and yields batches of the suffixes.

    Args:
        model: The model.
        groups: Groups whose prefixes are read together.
        masking: Gates of every mask.
        rows: Maximum number of rows of a batch.
    """
    prefixes, prefix_attention = left_padded([g.prefix for g in groups], device=model.device)
    gates, replacement = masking.of([group.members[0] for group in groups])
    with model.gates(gates, replacement=replacement):
        _, cache = model.forward(prefixes, prefix_attention, keep=1, use_cache=True)
    read = sum(len(group.prefix) for group in groups)
    members = [(index, row) for index, group in enumerate(groups) for row in group.members]
    lengths = [len(group.prefix) for group in groups]
    sequences = [(index, row.tokens) for index, row in members]
    for chunk, tokens, attention, past in continuations(
        cache, lengths, sequences, rows=rows, device=model.device
    ):
        work = tuple(members[member][1] for member in chunk)
        new = sum(len(members[m][1].tokens) - lengths[members[m][0]] for m in chunk)
        gates, replacement = masking.of(work)
        yield Batch(
            work,
            tokens,
            attention,
            past,
            model.gates(gates, replacement=replacement),
            read + new,
        )
        read = 0


def captured_batches(
    model: GatedModel, sequences: Sequence[Sequence[int]], points: Sequence[GatePoint]
) -> Iterator[tuple[dict[GatePoint, Tensor], Tensor]]:
    """Runs sequences on the intact model; yields each batch's activations and attention mask."""
    budget, start = Budget(model, None), 0
    while start < len(sequences):
        rows = sequences[start : start + budget.rows(max(map(len, sequences)))]
        batch = rows[: budget.padded_together([len(row) for row in rows])]
        start += len(batch)
        tokens, attention = left_padded(batch, device=model.device)
        with model.in_use(), captured(points) as activations:
            model.forward(tokens, attention, keep=1)
        yield activations, attention
