"""Muon in float32: momentum whose update is made orthogonal, for weight matrices.

PyTorch's own Muon iterates in bfloat16, which is slow on processors without it. Matrices of one
shape are stacked, so that the iteration is one batched product a shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch

# Coefficients of the quintic Newton-Schulz iteration by Keller Jordan (2024).
_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Push the singular values of each matrix towards one. Shape (count, rows, columns)."""
    a, b, c = _QUINTIC
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalized, with decoupled weight decay."""

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        """Take the matrices to train; `lr` is the step's root mean square per entry x width."""
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all matrices once."""
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, several in by_shape.items():
                updates = torch.stack([self._momentum(p, group["momentum"]) for p in several])
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                steps = orthogonalize(updates)
                for parameter, step in zip(several, steps, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.sub_(step, alpha=scale)

    def _momentum(self, parameter: torch.nn.Parameter, momentum: float) -> torch.Tensor:
        state = self.state[parameter]
        buffer = state.setdefault("momentum", torch.zeros_like(parameter))
        buffer.lerp_(parameter.grad, 1 - momentum)
        return parameter.grad.lerp(buffer, momentum)
