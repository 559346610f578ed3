"""What becomes of an ablated component: nothing, its mean, or what it did for another item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from broca.engine.budget import Budget
from broca.engine.work import left_padded
from broca.errors import BadInput
from broca.models import GatedModel, GatePoint, captured

AblationKind = Literal["zero", "mean", "resample"]


@dataclass(frozen=True)
class Ablation:
    """How components are ablated.

    Attributes:
        kind: `zero` puts nothing in the place of a component's output; `mean` its mean over the
            tokens of the locate items; `resample` what it was at one token of another item.
        scale: The gate of an ablated component: 0 ablates, other values scale its output (and mix
            in the replacement by 1 - scale).
        seed: Seed of `resample`.

    Raises:
        BadInput: An unknown kind, or a scale that is no number.
    """

    kind: AblationKind = "zero"
    scale: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(AblationKind):
            raise BadInput(
                f"`ablation` '{self.kind}' is unknown: use {', '.join(get_args(AblationKind))}"
            )
        if not np.isfinite(self.scale) or self.scale == 1:
            raise BadInput(
                f"`scale` {self.scale:g} ablates nothing: use a number other than 1 (0 ablates)"
            )

    def gates(self, masks: np.ndarray) -> np.ndarray:
        """Gates of masks, `(masks, components)` float32."""
        return np.where(masks, self.scale, 1.0).astype(np.float32)


@torch.inference_mode()
def donor_activations(
    model: GatedModel, prompts: Sequence[tuple[int, ...]], ablation: Ablation
) -> dict[GatePoint, Tensor]:
    """Collects the activations that stand in for ablated ones.

    Args:
        model: The model; it is run intact.
        prompts: Tokens of the donor items' prompts.
        ablation: `mean` gives one donor, the mean over all tokens of all prompts; `resample` gives
            one donor a prompt, its activation at one token drawn by seed.

    Returns:
        For every gate point `(donors, width)`; empty for `zero`.

    Raises:
        BadInput: A component has no activation that could be replaced (routed experts).
    """
    if ablation.kind == "zero":
        return {}
    routed = [point for point in model.points if point.place == "routing"]
    if routed:
        raise BadInput(
            f"`ablation` {ablation.kind} cannot replace routed experts ({routed[0].path}): use zero"
        )
    rng = np.random.default_rng(ablation.seed)
    chosen = [int(rng.integers(len(prompt))) for prompt in prompts]
    collected: dict[GatePoint, list[Tensor]] = {point: [] for point in model.points}
    budget, start = Budget(model, None), 0
    longest = max(len(prompt) for prompt in prompts)
    while start < len(prompts):
        batch = list(prompts[start : start + budget.rows(longest)])
        tokens, attention = left_padded(batch, device=model.device)
        with model.in_use(), captured(model.points) as seen:
            model.forward(tokens, attention, keep=1)
        for point, activation in seen.items():
            shaped = activation.reshape(*tokens.shape, -1)  # (rows, tokens, width)
            present = attention.to(shaped.device, torch.bool)
            for row in range(len(batch)):
                own = shaped[row][present[row]].float()
                collected[point].append(
                    own.sum(0) if ablation.kind == "mean" else own[chosen[start + row]]
                )
        start += len(batch)
    if ablation.kind == "resample":
        return {point: torch.stack(rows) for point, rows in collected.items()}
    count = sum(len(prompt) for prompt in prompts)
    return {point: torch.stack(rows).sum(0)[None] / count for point, rows in collected.items()}
