"""Reads next-token log-probabilities while heads' outputs are replaced, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from broca.errors import BadInput
from broca.models import GatedModel, GatePoint, captured

State = Mapping[GatePoint, Tensor]
"""What every gate point met, `(prompts, tokens, width)`."""


class Patcher:
    """Runs prompts of equal length with chosen heads' outputs written over.

    Args:
        model: The model; its components must be heads.
        rows: Prompts of a batch.

    Raises:
        BadInput: Its components are no attention heads.
    """

    def __init__(self, model: GatedModel, *, rows: int = 64) -> None:
        if any(one.kind != "head" for one in model.components):
            raise BadInput(
                f"a stress test writes outputs of heads, not of {model.kinds}: use heads"
            )
        self.model = model
        self._rows = rows

    @torch.inference_mode()
    def state(self, prompts: Sequence[Sequence[int]]) -> dict[GatePoint, Tensor]:
        """The intact outputs of all heads, as the gates would meet them."""
        parts: list[dict[GatePoint, Tensor]] = []
        for tokens in self._batches(prompts):
            with captured(self.model.points) as seen:
                self.model.forward(tokens, torch.ones_like(tokens), keep=1)
            parts.append({p: one.reshape(*tokens.shape, -1).clone() for p, one in seen.items()})
        return {point: torch.cat([part[point] for part in parts]) for point in self.model.points}

    @torch.inference_mode()
    def log_probs(
        self,
        prompts: Sequence[Sequence[int]],
        columns: Sequence[int] = (),
        written: State | None = None,
    ) -> Tensor:
        """Log-probabilities of the next token, `(prompts, vocabulary)`.

        Args:
            prompts: Tokens, all of one length.
            columns: Heads whose outputs are replaced.
            written: What replaces them; zeros by default.
        """
        found, start = [], 0
        for tokens in self._batches(prompts):
            gates = torch.ones(len(tokens), len(self.model.components))
            gates[:, list(columns)] = 0
            part = (
                None
                if written is None
                else {p: one[start : start + len(tokens)] for p, one in written.items()}
            )
            with self.model.gates(gates, replacement=part):
                logits, _ = self.model.forward(tokens, torch.ones_like(tokens), keep=1)
            found.append(logits[:, -1].float().log_softmax(-1).cpu())
            start += len(tokens)
        return torch.cat(found)

    def heads_of(self, state: State, columns: Sequence[int]) -> Tensor:
        """Outputs of some heads, `(prompts, tokens, heads, width)`."""
        parts = []
        for column in columns:
            point = self._point(column)
            cut = state[point].reshape(*state[point].shape[:2], point.units, -1)
            parts.append(cut[:, :, column - point.first_column].float())
        return torch.stack(parts, dim=2)

    def _point(self, column: int) -> GatePoint:
        return next(
            one
            for one in self.model.points
            if one.first_column <= column < one.first_column + one.units
        )

    def with_heads(self, state: State, columns: Sequence[int], outputs: Tensor) -> State:
        """A state in which some heads' outputs are others, `(prompts, tokens, heads, width)`."""
        changed = {point: one.clone() for point, one in state.items()}
        for number, column in enumerate(columns):
            point = self._point(column)
            cut = changed[point].view(*changed[point].shape[:2], point.units, -1)
            cut[:, :, column - point.first_column] = outputs[:, :, number].to(cut)
        return changed

    def _batches(self, prompts: Sequence[Sequence[int]]) -> list[Tensor]:
        if len({len(prompt) for prompt in prompts}) > 1:
            raise BadInput("prompts of a family must be of one length in tokens")
        every = torch.tensor([list(prompt) for prompt in prompts], device=self.model.device)
        return [every[start : start + self._rows] for start in range(0, len(every), self._rows)]
