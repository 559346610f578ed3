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


@dataclass(frozen=True)
class OutputNorms:
    """The Euclidean norms of all components' outputs on a sequence, as an observation.

    Its vector contains the sum of a component's norms over the tokens, `(components,)`. The model
    is intact, and components are gated at their activations: routed experts have none.

    Attributes:
        components: Digest of the components.
        tokens: The sequence.
    """

    kind: ClassVar[str] = "output norms"

    components: str
    tokens: tuple[int, ...]

    @property
    def key(self) -> str:
        """The components and the sequence."""
        return repr((self.components, self.tokens))

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @classmethod
    @torch.inference_mode()
    def observe(
        cls, engine: Engine, observations: Sequence[OutputNorms]
    ) -> list[NDArray[np.float32]]:
        """Measures observations with an engine's model."""
        model = engine.model
        vectors = np.empty((len(observations), len(model.components)), dtype=np.float32)
        sequences = [observation.tokens for observation in observations]
        start = 0
        for activations, attention in captured_batches(model, sequences, model.points):
            end = start + len(attention)
            for point, activation in activations.items():
                # (rows, tokens, units, width)
                outputs = activation.reshape(*attention.shape, point.units, -1).float()
                norms = outputs.norm(dim=-1) * attention.to(outputs.device)[..., None]
                vectors[start:end, point.columns] = norms.double().sum(1).cpu().numpy()
            start = end
        engine.observed_tokens += sum(map(len, sequences))
        return list(vectors)
