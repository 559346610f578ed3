"""Checks of a model's logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from broca.errors import BadLogits


def require_finite(logits: Tensor, requests: Sequence[int]) -> None:
    """Refuses NaN and infinite logits.

    Args:
        logits: Logits, `(rows, positions, vocabulary)`.
        requests: Position of every row's (first) request, for the message.

    Raises:
        BadLogits: The logits are not finite; the message names the first faulty request.
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
