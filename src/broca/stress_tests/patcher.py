"""Next-token log-probabilities with heads' outputs replaced, and what is written in their place.

Writes and observations are plain data, so that any process can measure them and the journal can
keep their vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.ablation import ABLATIONS
from broca.errors import BadInput
from broca.models import GatedModel, GatePoint, captured

Prompt = tuple[int, ...]
"""Tokens of a prompt."""

Prompts = tuple[Prompt, ...]
"""Prompts of equal length."""

HeadColumns = tuple[int, ...]
"""Heads by their columns among the model's components."""

State = Mapping[GatePoint, Tensor]
"""Activation of every gate point, `(prompts, tokens, width)`."""

_ROWS = 64
"""Number of prompts of a batch."""

_STATES = 4
"""Number of states in memory: consecutive writes use the same states."""


class Patcher:
    """Runs prompts of equal length with the outputs of some heads replaced.

    Args:
        model: The model; its components must be heads.

    Attributes:
        tokens: Number of tokens that the model has read so far.
    """

    def __init__(self, model: GatedModel) -> None:
        self.model = model
        self.tokens = 0
        self.state = lru_cache(_STATES)(self._state)
        """Returns the intact outputs of all heads on prompts, before their gates."""

    @torch.inference_mode()
    def _state(self, prompts: Prompts) -> State:
        parts: list[State] = []
        for tokens in self._batches(prompts):
            with captured(self.model.points) as activations:
                self._logits(tokens)
            parts.append(activations)
        shape = (len(prompts), len(prompts[0]), -1)
        return {
            point: torch.cat([part[point] for part in parts]).reshape(shape)
            for point in self.model.points
        }

    @torch.inference_mode()
    def log_probs(
        self, prompts: Prompts, columns: Sequence[int] = (), written: State | None = None
    ) -> Tensor:
        """Returns the log-probabilities of the next token, `(prompts, vocabulary)`.

        Args:
            prompts: Tokens, all of the same length.
            columns: Heads whose outputs are replaced.
            written: Replacement of the outputs; zeros by default.
        """
        gates = torch.ones(_ROWS, len(self.model.components))
        gates[:, list(columns)] = 0
        parts = {point: torch.split(values, _ROWS) for point, values in (written or {}).items()}
        batches = []
        for number, tokens in enumerate(self._batches(prompts)):
            part = {point: values[number] for point, values in parts.items()} or None
            with self.model.gates(gates[: len(tokens)], replacement=part):
                batches.append(self._logits(tokens).float().log_softmax(-1).cpu())
        return torch.cat(batches)

    def _batches(self, prompts: Prompts) -> tuple[Tensor, ...]:
        if len({len(prompt) for prompt in prompts}) > 1:
            raise BadInput("prompts of a family must be of one length in tokens")
        return torch.split(torch.tensor(prompts, device=self.model.device), _ROWS)

    def _logits(self, tokens: Tensor) -> Tensor:
        """Returns the logits of the next token, `(prompts, vocabulary)`."""
        self.tokens += tokens.numel()
        return self.model.run_whole(tokens, torch.ones_like(tokens))[0][:, 0]

    def heads_of(self, state: State, columns: Sequence[int]) -> Tensor:
        """Returns the outputs of some heads, `(prompts, tokens, heads, width)`."""
        return torch.stack([self._head(state, column).float() for column in columns], dim=2)

    def with_heads(self, state: State, columns: Sequence[int], outputs: Tensor) -> State:
        """Returns a state with other outputs of some heads, `(prompts, tokens, heads, width)`."""
        changed = {point: values.clone() for point, values in state.items()}
        for number, column in enumerate(columns):
            self._head(changed, column).copy_(outputs[:, :, number])
        return changed

    def _head(self, state: State, column: int) -> Tensor:
        """Returns a view of the outputs of a head, `(prompts, tokens, width)`."""
        point = next(point for point in self.model.points if column < point.columns.stop)
        by_head = state[point].view(*state[point].shape[:2], point.units, -1)
        return by_head[:, :, column - point.first_column]


@dataclass(frozen=True)
class Ablated:
    """What a kind of ablation puts in the place of the outputs; by default zeros.

    Attributes:
        kind: Kind of ablation, a key of `ABLATIONS`.
        seed: Seed of drawn donors.
    """

    kind: str = "zero"
    seed: int = 0

    def state(self, patcher: Patcher, prompts: Prompts, columns: HeadColumns) -> State | None:
        """Returns the replacement of the prompts' states; None for zeros, which need no state."""
        of_prompts = ABLATIONS[self.kind].of_prompts
        if of_prompts is None:
            return None
        state = patcher.state(prompts)
        return {point: of_prompts(values, self.seed) for point, values in state.items()}


@dataclass(frozen=True)
class OutputsOf:
    """The outputs of source prompts, aligned at the last token.

    If a source is shorter, earlier tokens keep the outputs of the prompt itself.
    """

    sources: Prompts

    def state(self, patcher: Patcher, prompts: Prompts, columns: HeadColumns) -> State:
        """Returns the sources' states."""
        source_state = patcher.state(self.sources)
        written = {}
        for point, values in patcher.state(prompts).items():
            tokens = min(values.shape[1], source_state[point].shape[1])
            mixed = values.clone()
            mixed[:, -tokens:] = source_state[point][:, -tokens:]
            written[point] = mixed
        return written


@dataclass(frozen=True)
class Noise:
    """The prompts' outputs plus random directions, at the distance of the sources' outputs."""

    sources: Prompts
    seed: int

    def state(self, patcher: Patcher, prompts: Prompts, columns: HeadColumns) -> State:
        """Returns the prompts' states with noise on the heads."""
        state = patcher.state(prompts)
        outputs = patcher.heads_of(state, columns)
        source_outputs = patcher.heads_of(patcher.state(self.sources), columns)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(outputs.shape, generator=generator).to(outputs)
        distance = (source_outputs - outputs).norm(dim=-1, keepdim=True)
        disturbed = outputs + noise / noise.norm(dim=-1, keepdim=True) * distance
        return patcher.with_heads(state, columns, disturbed)


@dataclass(frozen=True)
class RestoredPart:
    """A part of the prompts' outputs, and zeros for the rest.

    Attributes:
        tokens: The restored tokens.
        head: Index of the only restored head; by default all are restored.
        dimensions: Number of restored leading principal dimensions of the heads' joint outputs; by
            default all.
    """

    tokens: Literal["all", "last", "all but last"] = "all"
    head: int | None = None
    dimensions: int | None = None

    def state(self, patcher: Patcher, prompts: Prompts, columns: HeadColumns) -> State:
        """Returns the prompts' states with the part on the heads."""
        state = patcher.state(prompts)
        outputs = patcher.heads_of(state, columns)  # (prompts, tokens, heads, width)
        part = outputs.clone()
        if self.head is not None:
            part[:, :, np.arange(part.shape[2]) != self.head] = 0
        if self.tokens == "last":
            part[:, :-1] = 0
        if self.tokens == "all but last":
            part[:, -1] = 0
        if self.dimensions is not None:
            flat = part.flatten(2)
            _, _, directions = torch.linalg.svd(flat.flatten(0, 1), full_matrices=False)
            basis = directions[: self.dimensions]
            part = (flat @ basis.T @ basis).reshape(outputs.shape)
        return patcher.with_heads(state, columns, part)


@dataclass(frozen=True)
class OperationOffset:
    """The prompts' outputs plus an operation's mean offset from the neutral word.

    Attributes:
        operation_prompts: Prompts of every operation, operand by operand.
        neutral_prompts: The same operands with the neutral word.
        operations: Index of each prompt's operation.
        seed: Seed of random directions of the same norm that replace the offset; None for the
            offset itself.
    """

    operation_prompts: tuple[Prompts, ...]
    neutral_prompts: Prompts
    operations: tuple[int, ...]
    seed: int | None = None

    def state(self, patcher: Patcher, prompts: Prompts, columns: HeadColumns) -> State:
        """Returns the prompts' states with the offset at all heads."""
        neutral = patcher.state(self.neutral_prompts)
        offsets = []
        for operation_prompts in self.operation_prompts:
            state = patcher.state(operation_prompts)
            offsets.append({point: (state[point] - neutral[point]).mean(0) for point in state})
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        written = {}
        for point, values in patcher.state(prompts).items():
            added = torch.stack([offsets[operation][point] for operation in self.operations])
            if generator is not None:
                noise = torch.randn(added.shape, generator=generator).to(added)
                added = noise * added.norm() / noise.norm()
            written[point] = values + added
        return written


Write = Ablated | OutputsOf | Noise | RestoredPart | OperationOffset
"""What is written in the place of heads' outputs; `state` returns it for every gate point."""


@dataclass(frozen=True)
class _Reading(ABC):
    """An observation of a model on some prompts; see `broca.measurement.Observation`.

    Attributes:
        prompts: Tokens, all of the same length.
        columns: Columns of the heads.
    """

    kind: ClassVar[str]

    prompts: Prompts
    columns: HeadColumns

    @property
    def key(self) -> str:
        """The prompts, the heads and all other fields."""
        return repr(self)

    @property
    def length(self) -> int:
        """Number of tokens of two passes over the prompts."""
        return 2 * sum(len(prompt) for prompt in self.prompts)

    @classmethod
    @torch.inference_mode()
    def observe(cls, engine: Any, observations: Sequence[Self]) -> list[NDArray[np.float32]]:
        """Measures observations and computes shared outputs of the intact model once."""
        with engine.model.in_use():
            patcher = Patcher(engine.model)
            vectors = [observation._read(patcher).cpu().numpy() for observation in observations]
        engine.observed_tokens += patcher.tokens
        return vectors

    @abstractmethod
    def _read(self, patcher: Patcher) -> Tensor:
        """Returns the vector of the observation."""


@dataclass(frozen=True)
class AnswerLogProbs(_Reading):
    """Log-probabilities of answer tokens with heads' outputs replaced, prompt by prompt.

    Attributes:
        tokens: Answer tokens of every prompt, equally many.
        write: Replacement of the outputs of the heads.
    """

    kind: ClassVar[str] = "answer log-probabilities"

    tokens: tuple[tuple[int, ...], ...]
    write: Write = field(default_factory=Ablated)

    def _read(self, patcher: Patcher) -> Tensor:
        written = self.write.state(patcher, self.prompts, self.columns)
        log_probs = patcher.log_probs(self.prompts, self.columns, written)
        return log_probs.gather(1, torch.tensor(self.tokens)).flatten()


class HeadOutputs(_Reading):
    """The intact outputs of some heads at the last token, prompt by prompt."""

    kind: ClassVar[str] = "head outputs"

    def _read(self, patcher: Patcher) -> Tensor:
        return patcher.heads_of(patcher.state(self.prompts), self.columns)[:, -1].flatten()
