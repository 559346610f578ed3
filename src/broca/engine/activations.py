"""Activations of the intact model on sequences: donors that replace outputs, and outputs' norms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.ablation import ABLATIONS, Ablation, ablations_of
from broca.engine.budget import Budget
from broca.errors import BadInput
from broca.models import GatedModel, GatePoint, captured
from broca.models.caches import left_padded

if TYPE_CHECKING:
    from broca.engine.engine import Engine


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
        start += len(batch)
        tokens, attention = left_padded(batch, device=model.device)
        with model.in_use(), captured(points) as activations:
            model.forward(tokens, attention, keep=1)
        shape = attention.shape
        yield {point: value.reshape(*shape, -1) for point, value in activations.items()}, attention


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
    return {point: kind.donors(torch.stack(rows), count) for point, rows in collected.items()}


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
    def observe(
        cls, engine: Engine, observations: Sequence[OutputNorms]
    ) -> list[NDArray[np.float32]]:
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
