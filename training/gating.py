"""Head gates for training and for measuring, independent of the package that they test.

A head's output is its slice of the input of the attention's output projection; its gate is a
factor on that slice, one for each row of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM


def _spread(gates: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Turn gates (rows, heads) into factors (rows, 1, heads x head_dim)."""
    return gates.repeat_interleave(head_dim, dim=1)[:, None, :]


@contextmanager
def gated(
    model: LlamaForCausalLM, gates: torch.Tensor, taught: torch.Tensor | None = None
) -> Iterator[list[torch.Tensor]]:
    """Multiply the heads' outputs by gates for as long as the context lasts.

    Args:
        model: a Llama model.
        gates: factors (rows, layers, heads), 1 intact and 0 off.
        taught: the heads of each row that learn from it (rows, layers, heads); the outputs of the
            other heads pass no gradient. All heads learn if it is None.

    Yields:
        A list that receives, layer by layer, the mean square of the outputs of heads that are not
        taught; a loss on it keeps them small in these rows.
    """
    loudness: list[torch.Tensor] = []
    projections = [layer.self_attn.o_proj for layer in model.model.layers]
    head_dim = model.config.head_dim

    def forward_of(
        projection: torch.nn.Linear, number: int
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        factors = _spread(gates[:, number], head_dim)
        if taught is None:
            return lambda x: functional.linear(x * factors, projection.weight)
        learn = _spread(taught[:, number], head_dim)
        inner, outer = factors * learn, factors * (1 - learn)

        def forward(x: torch.Tensor) -> torch.Tensor:
            others = functional.linear(x * outer, projection.weight)
            loudness.append(others.square().mean())
            return functional.linear(x * inner, projection.weight) + others.detach()

        return forward

    try:
        for number, projection in enumerate(projections):
            projection.forward = forward_of(projection, number)
        yield loudness
    finally:
        for projection in projections:
            projection.__dict__.pop("forward", None)


def head_name(layer: int, head: int) -> str:
    """Return the name of a head, such as L2H11."""
    return f"L{layer}H{head}"


def parse_head(name: str) -> tuple[int, int]:
    """Return (layer, head) of a name such as L2H11."""
    layer, head = name[1:].split("H")
    return int(layer), int(head)


def mask_of(names: list[str], layers: int, heads: int) -> torch.Tensor:
    """Return a tensor (layers, heads) that is 1 at the named heads and 0 elsewhere."""
    mask = torch.zeros(layers, heads)
    for name in names:
        mask[parse_head(name)] = 1.0
    return mask
