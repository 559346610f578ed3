"""Computes next-token log-probabilities with heads' outputs replaced, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from broca.errors import BadInput
from broca.models import GatedModel, GatePoint, captured
from broca.stress_tests.prompts import Prompt

State = Mapping[GatePoint, Tensor]
"""Activation of every gate point, `(prompts, tokens, width)`."""

_STATES = 4
"""Number of states in memory: consecutive writes use the same states."""


class Patcher:
    """Runs prompts of equal length with the outputs of some heads replaced.

    Args:
        model: The model; its components must be heads.
        rows: Number of prompts of a batch.

    Attributes:
        tokens: Number of tokens that the model has read so far.

    Raises:
        BadInput: The components are not attention heads.
    """

    def __init__(self, model: GatedModel, *, rows: int = 64) -> None:
        require_heads(model)
        self.model = model
        self.tokens = 0
        self._rows = rows
        self._states: dict[tuple[Prompt, ...], State] = {}

    def state(self, prompts: tuple[Prompt, ...]) -> State:
        """Returns the intact outputs of all heads, before their gates."""
        if prompts not in self._states:
            if len(self._states) == _STATES:
                del self._states[next(iter(self._states))]
            self._states[prompts] = self._captured(prompts)
        return self._states[prompts]

    @torch.inference_mode()
    def _captured(self, prompts: tuple[Prompt, ...]) -> State:
        parts: list[State] = []
        for tokens in self._batches(prompts):
            with captured(self.model.points) as activations:
                self.model.forward(tokens, torch.ones_like(tokens), keep=1)
            self.tokens += tokens.numel()
            parts.append(
                {
                    point: values.reshape(*tokens.shape, -1).clone()
                    for point, values in activations.items()
                }
            )
        return {point: torch.cat([part[point] for part in parts]) for point in self.model.points}

    @torch.inference_mode()
    def log_probs(
        self,
        prompts: tuple[Prompt, ...],
        columns: Sequence[int] = (),
        written: State | None = None,
    ) -> Tensor:
        """Returns the log-probabilities of the next token, `(prompts, vocabulary)`.

        Args:
            prompts: Tokens, all of the same length.
            columns: Heads whose outputs are replaced.
            written: Replacement of the outputs; zeros by default.
        """
        batches, start = [], 0
        for tokens in self._batches(prompts):
            gates = torch.ones(len(tokens), len(self.model.components))
            gates[:, list(columns)] = 0
            part = (
                None
                if written is None
                else {
                    point: values[start : start + len(tokens)] for point, values in written.items()
                }
            )
            with self.model.gates(gates, replacement=part):
                logits, _ = self.model.forward(tokens, torch.ones_like(tokens), keep=1)
            self.tokens += tokens.numel()
            batches.append(logits[:, -1].float().log_softmax(-1).cpu())
            start += len(tokens)
        return torch.cat(batches)

    def heads_of(self, state: State, columns: Sequence[int]) -> Tensor:
        """Returns the outputs of some heads, `(prompts, tokens, heads, width)`."""
        parts = []
        for column in columns:
            point = self._point(column)
            by_head = state[point].reshape(*state[point].shape[:2], point.units, -1)
            parts.append(by_head[:, :, column - point.first_column].float())
        return torch.stack(parts, dim=2)

    def with_heads(self, state: State, columns: Sequence[int], outputs: Tensor) -> State:
        """Returns a state with other outputs of some heads, `(prompts, tokens, heads, width)`."""
        changed = {point: values.clone() for point, values in state.items()}
        for number, column in enumerate(columns):
            point = self._point(column)
            by_head = changed[point].view(*changed[point].shape[:2], point.units, -1)
            by_head[:, :, column - point.first_column] = outputs[:, :, number].to(by_head)
        return changed

    def _point(self, column: int) -> GatePoint:
        return next(
            point
            for point in self.model.points
            if point.first_column <= column < point.first_column + point.units
        )

    def _batches(self, prompts: tuple[Prompt, ...]) -> list[Tensor]:
        if len({len(prompt) for prompt in prompts}) > 1:
            raise BadInput("prompts of a family must be of one length in tokens")
        tokens = torch.tensor(prompts, device=self.model.device)
        return [tokens[start : start + self._rows] for start in range(0, len(tokens), self._rows)]


def require_heads(model: GatedModel) -> None:
    """Refuses a model whose components are not attention heads.

    Raises:
        BadInput: The components are not heads.
    """
    if any(component.kind != "head" for component in model.components):
        raise BadInput(
            f"a stress test writes outputs of heads, not of {model.kinds}: load the model with "
            "`components` heads"
        )
