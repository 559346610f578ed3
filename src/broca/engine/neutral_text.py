"""The change of a model's next-token distribution on text without components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class TextReading:
    """Next-token predictions of the intact and of the ablated model, as an observation.

    Its vector contains the mean negative log-likelihood of the intact and of the ablated model and
    the mean divergence of the first distribution from the second, in nats per token, `(3,)`. Drawn
    donors are those of the first item.

    Attributes:
        components: Digest of the names of all components of the model.
        columns: The ablated components.
        scale: Their gate.
        sequences: Tokens of the texts, two or more each.
    """

    kind: ClassVar[str] = "text"

    components: str
    columns: tuple[int, ...]
    scale: float
    sequences: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> str:
        """The components, their gate and the texts."""
        return repr((self.components, self.columns, self.scale, self.sequences))

    @property
    def length(self) -> int:
        """Number of tokens of two passes over the texts."""
        return 2 * sum(map(len, self.sequences))

    @classmethod
    @torch.inference_mode()
    def observe(cls, engine: Any, observations: Sequence[TextReading]) -> list[NDArray[np.float32]]:
        """Measures observations with an engine's model and its donors."""
        model, vectors = engine.model, []
        replacement = {point: values[:1] for point, values in engine.donors.items()}
        for observation in observations:
            gates = torch.ones(1, len(model.components))
            gates[0, list(observation.columns)] = observation.scale
            totals, count = np.zeros(3), 0
            for sequence in observation.sequences:
                tokens = torch.tensor([sequence], device=model.device)
                targets, attention = tokens[0, 1:, None], torch.ones_like(tokens)
                log_probs = []
                for values in (torch.ones_like(gates), gates):
                    with model.gates(values, replacement=replacement):
                        logits, _ = model.forward(tokens, attention, keep=len(sequence))
                    log_probs.append(logits[0, :-1].float().log_softmax(-1))
                intact, ablated = log_probs  # (tokens - 1, vocabulary)
                losses = [-of.gather(1, targets.to(of.device)).sum().item() for of in log_probs]
                totals += [*losses, (intact.exp() * (intact - ablated)).nansum().item()]
                count += len(targets)
            vectors.append((totals / count).astype(np.float32))
            engine.observed_tokens += observation.length
        return vectors
