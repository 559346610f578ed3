"""Checks on what a model returns."""

from __future__ import annotations

import torch
from torch import Tensor

from broca.errors import BadLogits


def require_finite(logits: Tensor) -> None:
    """Refuses NaN and infinite logits.

    Args:
        logits: `(rows, positions, vocabulary)`.

    Raises:
        BadLogits: Names the first row at fault.
    """
    # the largest absolute value is finite only if all are: one pass, no copy of the logits
    finite = torch.isfinite(logits.amax((1, 2)) - logits.amin((1, 2)))
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0, 0])
        raise BadLogits(
            f"the model returned NaN or infinite logits in row {row} of a batch of {len(finite)}: "
            "its weights or its number format are at fault; try --dtype float32"
        )
