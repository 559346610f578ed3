"""The norms of components' outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from broca.engine.budget import Budget
from broca.engine.work import left_padded
from broca.models import GatedModel, captured


@torch.inference_mode()
def output_norms(
    model: GatedModel, sequences: Sequence[tuple[int, ...]]
) -> NDArray[np.float64] | None:
    """Returns the mean Euclidean norm of every component's output at its gate.

    Args:
        model: The model; it is run intact.
        sequences: Tokens to average over; all tokens have equal weight.

    Returns:
        `(components,)`; None if some components have no activation (routed experts).
    """
    if any(point.place == "routing" for point in model.points):
        return None
    total = np.zeros(len(model.components))
    budget, start = Budget(model, None), 0
    longest = max(len(sequence) for sequence in sequences)
    while start < len(sequences):
        batch = list(sequences[start : start + budget.rows(longest)])
        tokens, attention = left_padded(batch, device=model.device)
        with model.in_use(), captured(model.points) as seen:
            model.forward(tokens, attention, keep=1)
        for point, activation in seen.items():
            # (rows, tokens, units, width)
            slices = activation.reshape(*tokens.shape, point.units, -1).float()
            norms = slices.norm(dim=-1) * attention.to(slices.device)[..., None]
            total[point.columns] += norms.double().sum((0, 1)).cpu().numpy()
        start += len(batch)
    return total / sum(len(sequence) for sequence in sequences)
