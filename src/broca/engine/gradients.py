"""Margins and their gradients with respect to the gates, by one backward pass for each batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.batches import Lane, Work, longest_first, require_finite
from broca.engine.reader import target_log_probabilities
from broca.models.caches import left_padded
from broca.tasks.margins import Margin

_COST = 8
"""Cost of a token in the budget while its activations are kept for the backward pass."""

MarginRow = tuple[Margin, int, int]
"""A margin, its row of the gates, and its row of the donors."""


def differentiate(
    lane: Lane, masks: Tensor, rows: Sequence[MarginRow]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Computes margins of rows and their gradients with respect to the gates.

    Args:
        lane: The model, whose weights are frozen, and its budget.
        masks: Gates of every mask, `(masks, components)`.
        rows: The rows.

    Returns:
        Margins `(rows,)`, and their gradients `(rows, components)`.
    """
    margins = np.empty(len(rows))
    gradients = np.empty((len(rows), len(lane.model.components)), dtype=np.float32)
    lengths = [
        sum(len(request.context) + len(request.continuation) for request in margin.requests)
        for margin, _, _ in rows
    ]
    pending = sorted(range(len(rows)), key=lengths.__getitem__, reverse=True)
    while pending:
        batch = lane.budget.batch(pending, lengths.__getitem__, cost=_COST)
        with lane.budget.attempt(len(batch)):
            margins[batch], gradients[batch] = _batch(lane, masks, [rows[row] for row in batch])
            del pending[: len(batch)]
    return margins, gradients


@torch.enable_grad()
def _batch(
    lane: Lane, masks: Tensor, rows: Sequence[MarginRow]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Computes the margins and gradients of rows that fit memory together."""
    readings: dict[tuple[int, tuple[int, ...]], Work] = {}
    for row, (margin, _, donor) in enumerate(rows):
        for number, request in enumerate(margin.requests):
            read = (*request.context, *request.continuation)[:-1]
            reading = readings.setdefault((row, read), Work(row, donor, read, request, []))
            reading.targets.append((number, request.continuation))
    work = longest_first(list(readings.values()))
    leaf = masks[[mask for _, mask, _ in rows]].to(lane.model.device)
    leaf.requires_grad_()
    totals: list[list[Tensor]] = [[leaf.new_empty(0)] * len(m.requests) for m, _, _ in rows]
    start = 0
    while start < len(work):
        together = lane.budget.padded_together([reading.length for reading in work[start:]])
        chunk = work[start : start + together]
        tokens, attention = left_padded([r.tokens for r in chunk], device=lane.model.device)
        with lane.gates(leaf, chunk):
            logits, _ = lane.model.forward(tokens, attention, keep=max(row.target for row in chunk))
        require_finite(logits.detach(), [reading.mask for reading in chunk])
        likely = iter(target_log_probabilities(chunk, logits)[0].sum(-1))
        for reading in chunk:
            for number, _ in reading.targets:
                totals[reading.mask][number] = next(likely)
        start += together
    lane.tokens += sum(reading.length for reading in work)
    margins = torch.stack(
        [margin.of(torch.stack(total)) for (margin, _, _), total in zip(rows, totals, strict=True)]
    )
    (gradient,) = torch.autograd.grad(margins.sum(), leaf)
    return margins.detach().double().cpu().numpy(), gradient.float().cpu().numpy()
