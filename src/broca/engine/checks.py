"""Checks on what a model returns."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from broca.errors import BadLogits


def require_finite(logits: Tensor, requests: Sequence[int]) -> None:
    """Refuses NaN and infinite logits.

    Args:
        logits: `(rows, positions, vocabulary)`.
        requests: For every row the position of its (first) request, to say which is at fault.

    Raises:
        BadLogits: Names the first request at fault.
    """
    # the largest absolute value is finite only if all are: one pass, no copy of the logits
    finite = torch.isfinite(logits.amax((1, 2)) - logits.amin((1, 2)))
    if not bool(finite.all()):
        request = requests[int((~finite).nonzero()[0, 0])]
        raise BadLogits(
            f"the model returned NaN or infinite logits for request {request}: its weights or its "
            "number format are at fault; try `dtype` float32",
            request=request,
        )
