"""The kinds of ablation: what replaces the output of an ablated component."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from broca.errors import BadInput, nearest
from broca.models import GatedModel


@dataclass(frozen=True, kw_only=True)
class AblationKind:
    """The record of a kind of ablation; nothing else asks for the name of a kind.

    Its donors decide about exports: weights can hold a constant donor, no export one that is drawn.

    Attributes:
        name: Name of the kind in `ablation`.
        help: The replacement of a component's output, for the menu and the docs.
        of_sequence: Reduces a component's activations over the tokens of a sequence, `(tokens,
            width)`, with a token drawn by seed, to `(width,)`; None if nothing replaces the output.
        donors: Makes the donors, `(donors, width)`, from the reduced activations of all sequences,
            `(sequences, width)`, and the total number of tokens.
        draws_donors: Whether every row draws its donor by seed; else all rows have the first.
        of_prompts: Replaces the activations of prompts in a stress test, `(prompts, tokens, ...)`,
            by values of the same shape, from a seed; None if nothing replaces the output.
    """

    name: str
    help: str
    of_sequence: Callable[[Tensor, int], Tensor] | None = None
    donors: Callable[[Tensor, int], Tensor] = lambda activations, tokens: activations
    draws_donors: bool = False
    of_prompts: Callable[[Tensor, int], Tensor] | None = None

    @property
    def needs_donors(self) -> bool:
        """Whether activations of other items replace the output; routed experts have none."""
        return self.of_sequence is not None


def _shuffled(activations: Tensor, seed: int) -> Tensor:
    """Returns the activations of every prompt at the place of another."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(activations)))
    return activations[order.to(activations.device)]


ABLATIONS: dict[str, AblationKind] = {
    kind.name: kind
    for kind in (
        AblationKind(name="zero", help="nothing"),
        AblationKind(
            name="mean",
            help="its mean over all tokens, prompt and continuation, of the locate items",
            of_sequence=lambda activations, token: activations.sum(0),
            donors=lambda sums, tokens: sums.sum(0)[None] / tokens,
            of_prompts=lambda activations, seed: activations.mean((0, 1), keepdim=True).expand_as(
                activations
            ),
        ),
        AblationKind(
            name="resample",
            help="its value at one token, drawn by seed, of another locate item",
            of_sequence=lambda activations, token: activations[token],
            draws_donors=True,
            of_prompts=_shuffled,
        ),
    )
}
"""The kinds of ablation by name."""


def ablations_of(model: GatedModel) -> tuple[str, ...]:
    """Returns the kinds of ablation that apply to all components of a model."""
    routed = any(point.place == "routing" for point in model.points)
    return tuple(kind.name for kind in ABLATIONS.values() if not (routed and kind.needs_donors))


@dataclass(frozen=True)
class Ablation:
    """How components are ablated.

    Attributes:
        kind: Kind of ablation, a key of `ABLATIONS`.
        scale: The gate of an ablated component: 0 ablates, other values scale its output (and add 1
            - scale of the replacement).
        seed: Seed of drawn donors.

    Raises:
        BadInput: The kind is unknown, or the scale is not a number or ablates nothing.
    """

    kind: str = "zero"
    scale: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ABLATIONS:
            raise BadInput(
                f"`ablation` '{self.kind}' is unknown{nearest(self.kind, ABLATIONS)}; use "
                f"{', '.join(ABLATIONS)}"
            )
        if not np.isfinite(self.scale) or self.scale == 1:
            raise BadInput(
                f"`scale` {self.scale:g} ablates nothing: use a number other than 1 (0 ablates)"
            )

    @property
    def needs_donors(self) -> bool:
        """Whether activations of other items replace the output of an ablated component."""
        return ABLATIONS[self.kind].needs_donors

    @property
    def draws_donors(self) -> bool:
        """Whether every row draws its donor by seed."""
        return ABLATIONS[self.kind].draws_donors

    def gates(self, masks: np.ndarray) -> np.ndarray:
        """Returns the gates of masks, `(masks, components)` float32."""
        return np.where(masks, self.scale, 1.0).astype(np.float32)
