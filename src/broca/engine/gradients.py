"""Margins and their gradients with respect to the gates, by one backward pass for each batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.budget import Budget
from broca.engine.checks import require_finite
from broca.engine.reading import longest_target, target_log_probabilities
from broca.engine.work import Masking, Reading
from broca.models import GatedModel
from broca.models.caches import left_padded
from broca.tasks.margins import Margin

_COST = 8
"""Cost of a token in the budget while its activations are kept for the backward pass."""


class Differentiator:
    """Computes margins of rows and their gradients with respect to the gates.

    Args:
        model: The model; its weights are frozen.
        budget: The token budget, shared with the rest of the engine.
    """

    def __init__(self, model: GatedModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget
        self.tokens = 0
        """Number of tokens that were read so far, without padding and backward passes."""

    def run(
        self, rows: Sequence[tuple[Margin, int, int]], masking: Masking
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Differentiates every row.

        Args:
            rows: Margin, row of the gates and row of the donors of every row.
            masking: Gates of every mask.

        Returns:
            Margins `(rows,)`, and their gradients `(rows, components)`.
        """
        margins = np.empty(len(rows))
        gradients = np.empty((len(rows), len(self._model.components)), dtype=np.float32)
        lengths = [
            sum(len(request.context) + len(request.continuation) for request in margin.requests)
            for margin, _, _ in rows
        ]
        batches = self._budget.in_batches(
            sorted(range(len(rows)), key=lambda row: lengths[row], reverse=True),
            lambda batch: self._batch([rows[row] for row in batch], masking),
            length=lengths.__getitem__,
            cost=_COST,
        )
        for batch, results in batches:
            margins[batch], gradients[batch] = results
        return margins, gradients

    @torch.enable_grad()
    def _batch(
        self, rows: list[tuple[Margin, int, int]], masking: Masking
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        readings: dict[tuple[int, tuple[int, ...]], Reading] = {}
        owner: list[int] = []
        for index, (margin, mask, donor) in enumerate(rows):
            for number, request in enumerate(margin.requests):
                read = (*request.context, *request.continuation)[:-1]
                if (index, read) not in readings:
                    readings[index, read] = Reading(mask, donor, read)
                    owner.append(index)
                readings[index, read].targets.append((number, request.continuation))
        work = list(readings.values())
        order = sorted(range(len(owner)), key=lambda index: -work[index].length)
        work, owner = [work[index] for index in order], [owner[index] for index in order]
        leaf = masking.gates[[mask for _, mask, _ in rows]].to(self._model.device)
        leaf.requires_grad_()
        likely: list[Tensor] = []
        start = 0
        while start < len(work):
            end = start + self._budget.padded_together([row.length for row in work[start:]])
            likely.append(self._read(work[start:end], owner[start:end], leaf, masking))
            start = end
        self.tokens += sum(reading.length for reading in work)
        totals = self._by_request(torch.cat(likely), work, owner, rows)
        margins = torch.stack(
            [margin.of(total) for (margin, _, _), total in zip(rows, totals, strict=True)]
        )
        (gradient,) = torch.autograd.grad(margins.sum(), leaf)
        return margins.detach().double().cpu().numpy(), gradient.float().cpu().numpy()

    def _read(
        self, work: list[Reading], owner: list[int], leaf: Tensor, masking: Masking
    ) -> Tensor:
        """Returns the log-likelihoods of all targets of one batch, `(targets,)`.

        Args:
            work: What is read.
            owner: Row of each.
            leaf: Gates of the rows, `(rows, components)`.
            masking: Gates and donors of every mask.
        """
        tokens, attention = left_padded(
            [reading.tokens for reading in work], device=self._model.device
        )
        _, replacement = masking.of(work)
        gates = leaf[torch.tensor(owner, device=leaf.device)]
        with self._model.gates(gates, replacement=replacement):
            logits, _ = self._model.forward(tokens, attention, keep=longest_target(work))
        require_finite(logits.detach(), owner)
        return target_log_probabilities(work, logits)[0].sum(-1)

    @staticmethod
    def _by_request(
        totals: Tensor,
        work: Sequence[Reading],
        owner: Sequence[int],
        rows: Sequence[tuple[Margin, int, int]],
    ) -> list[Tensor]:
        """Returns the log-likelihoods of every row's requests, in the order of its margin."""
        places: list[list[int]] = [[0] * len(margin.requests) for margin, _, _ in rows]
        position = 0
        for reading, row in zip(work, owner, strict=True):
            for number, _ in reading.targets:
                places[row][number] = position
                position += 1
        return [totals[place] for place in places]
