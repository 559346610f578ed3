"""The kinds of ablation, and the activations of the intact model that replace outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.budget import Budget
from broca.errors import BadInput, require_known
from broca.models import GatedModel, GatePoint, captured
from broca.models.caches import left_padded


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
    next_in_cycle = order.roll(1)[order.argsort()]  # no prompt keeps its own
    return activations[next_in_cycle.to(activations.device)]


ABLATIONS: dict[str, AblationKind] = {
    kind.name: kind
    for kind in (
        AblationKind(name="zero", help="nothing"),
        AblationKind(
            name="mean",
            help="its mean over all tokens, prompt and continuation, of the locate items",
            of_sequence=lambda activations, token: activations.sum(0),
            donors=lambda sums, tokens: sums.sum(0)[None] / tokens,
            of_prompts=lambda prompts, seed: prompts.mean((0, 1), keepdim=True).expand_as(prompts),
        ),
        AblationKind(
            name="resample", help="its value at one token, drawn by seed, of another locate item",
            of_sequence=lambda activations, token: activations[token], draws_donors=True,
            of_prompts=_shuffled,
        ),
    )
}  # fmt: skip
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
        require_known("`ablation`", self.kind, ABLATIONS, error=BadInput)
        gate = torch.tensor(float(self.scale))  # in the precision of `gates`
        if not gate.isfinite() or gate == 1:
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


def _captured_batches(
    model: GatedModel, sequences: Sequence[Sequence[int]], points: Sequence[GatePoint]
) -> Iterator[tuple[dict[GatePoint, Tensor], Tensor]]:
    """Runs sequences on the intact model; yields each batch's activations and attention mask.

    Activations are `(rows, tokens, width)`.
    """
    budget, start = Budget(model, None), 0
    while start < len(sequences):
        rows = sequences[start : start + budget.rows(max(map(len, sequences)))]
        batch = rows[: budget.padded_together([len(row) for row in rows])]
        found = None
        with budget.attempt(len(batch)):
            tokens, attention = left_padded(batch, device=model.device)
            with model.in_use(), captured(points) as activations:
                model.run_whole(tokens, attention)
            shape = attention.shape
            found = {point: value.reshape(*shape, -1) for point, value in activations.items()}
        if found is not None:
            start += len(batch)
            yield found, attention


@torch.inference_mode()
def donor_activations(
    model: GatedModel,
    sequences: Sequence[tuple[int, ...]],
    ablation: Ablation,
    *,
    points: Sequence[GatePoint] | None = None,
) -> dict[GatePoint, Tensor]:
    """Collects the activations that replace ablated ones.

    Args:
        model: The model; it is run intact.
        sequences: Tokens of the donor items, prompt and continuation; all tokens have equal weight.
        ablation: The ablation, whose kind reduces a sequence's activations to donors.
        points: Gate points at which activations are collected; by default all of the model.

    Returns:
        Donors of every gate point, `(donors, width)`; empty if nothing replaces the output.

    Raises:
        BadInput: A component has no activation to replace (routed experts).
    """
    kind = ABLATIONS[ablation.kind]
    if kind.of_sequence is None:
        return {}
    points = model.points if points is None else points
    routed = [point for point in points if point.place == "routing"]
    if routed:
        raise BadInput(
            f"`ablation` {kind.name} cannot replace routed experts ({routed[0].path}): use "
            f"{' or '.join(ablations_of(model))}"
        )
    rng = np.random.default_rng(ablation.seed)
    chosen = iter([int(rng.integers(len(sequence))) for sequence in sequences])
    collected: dict[GatePoint, list[Tensor]] = {point: [] for point in points}
    for activations, attention in _captured_batches(model, sequences, points):
        for row, present in enumerate(attention.bool()):
            token = next(chosen)
            for point, values in activations.items():
                of_sequence = values[row][present.to(values.device)].float()  # (tokens, width)
                collected[point].append(kind.of_sequence(of_sequence, token))
    count = sum(len(sequence) for sequence in sequences)
    never = [torch.zeros(1)] * len(sequences)  # some layers of some models never run
    return {
        point: kind.donors(torch.stack(rows or never), count) for point, rows in collected.items()
    }


@dataclass(frozen=True)
class OutputNorms:
    """The mean Euclidean norms of all components' outputs over some sequences, as an observation.

    Its vector contains the mean over all tokens, `(components,)`. The model is intact, and
    components are gated at their activations: routed experts have none.

    Attributes:
        components: Digest of the components.
        sequences: Tokens to average over; all have equal weight.
    """

    kind: ClassVar[str] = "output norms"

    components: str
    sequences: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> str:
        """The components and the sequences."""
        return repr((self.components, self.sequences))

    @property
    def length(self) -> int:
        """Number of tokens."""
        return sum(map(len, self.sequences))

    @classmethod
    @torch.inference_mode()
    def observe(cls, engine: Any, observations: Sequence[OutputNorms]) -> list[NDArray[np.float32]]:
        """Measures observations with an engine's model."""
        model, vectors = engine.model, []
        for observation in observations:
            total = np.zeros(len(model.components))
            batches = _captured_batches(model, observation.sequences, model.points)
            for activations, attention in batches:
                for point, values in activations.items():
                    # (rows, tokens, units, width)
                    outputs = values.reshape(*attention.shape, point.units, -1).float()
                    norms = outputs.norm(dim=-1) * attention.to(outputs.device)[..., None]
                    total[point.columns] += norms.double().sum((0, 1)).cpu().numpy()
            vectors.append((total / observation.length).astype(np.float32))
            engine.observed_tokens += observation.length
        return vectors
