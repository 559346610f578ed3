"""The norms of components' outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from broca.engine.batches import captured_batches

if TYPE_CHECKING:
    from broca.engine.engine import Engine
    from broca.models import GatedModel


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
    def observe(
        cls, engine: Engine, observations: Sequence[OutputNorms]
    ) -> list[NDArray[np.float32]]:
        """Measures observations with an engine's model."""
        engine.observed_tokens += sum(observation.length for observation in observations)
        return [observation._mean(engine.model) for observation in observations]

    @torch.inference_mode()
    def _mean(self, model: GatedModel) -> NDArray[np.float32]:
        total = np.zeros(len(model.components))
        for activations, attention in captured_batches(model, self.sequences, model.points):
            for point, activation in activations.items():
                # (rows, tokens, units, width)
                outputs = activation.reshape(*attention.shape, point.units, -1).float()
                norms = outputs.norm(dim=-1) * attention.to(outputs.device)[..., None]
                total[point.columns] += norms.double().sum((0, 1)).cpu().numpy()
        mean: NDArray[np.float32] = (total / self.length).astype(np.float32)
        return mean
