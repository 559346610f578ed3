"""Checks of a model's logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from broca.errors import BadLogits


def require_finite(logits: Tensor, requests: Sequence[int]) -> None:
    """Refuses NaN and infinite logits; those of padded vocabulary may be -inf.

    Args:
        logits: Logits, `(rows, positions, vocabulary)`.
        requests: Position of every row's (first) request, for the message.

    Raises:
        BadLogits: Logits are NaN or +inf, or all are -inf; the message names the first faulty
            request.
    """
    # the largest value of every position: NaN if any is, without a copy of the logits
    finite = torch.isfinite(logits.amax(2)).all(1)
    if not bool(finite.all()):
        request = requests[int((~finite).nonzero()[0, 0])]
        raise BadLogits(
            f"the model returned NaN or infinite logits for request {request}: its weights or its "
            "number format are at fault; try `dtype` float32",
            request=request,
        )
