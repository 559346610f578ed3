"""The norms of components' outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from broca.engine.batches import captured_batches
from broca.models import GatedModel


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
    for activations, attention in captured_batches(model, sequences, model.points):
        for point, activation in activations.items():
            # (rows, tokens, units, width)
            slices = activation.reshape(*attention.shape, point.units, -1).float()
            norms = slices.norm(dim=-1) * attention.to(slices.device)[..., None]
            total[point.columns] += norms.double().sum((0, 1)).cpu().numpy()
    return total / sum(len(sequence) for sequence in sequences)
