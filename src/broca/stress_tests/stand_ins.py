"""Replacements of heads' outputs, as plain data that any process can convert to tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from broca.engine.ablation import ABLATIONS
from broca.stress_tests.patching import Patcher, State
from broca.stress_tests.prompts import Prompt


class StandIn(Protocol):
    """A replacement of the outputs of some heads."""

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State | None:
        """Returns the activation of every gate point; None for zeros."""


@dataclass(frozen=True)
class Zeros:
    """Zeros: the heads are ablated."""

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State | None:
        """Returns None: gates of zero need no state."""
        return None


@dataclass(frozen=True)
class Donors:
    """What a kind of ablation puts in the place of the outputs.

    Attributes:
        kind: Kind of ablation, a key of `ABLATIONS` that replaces outputs.
        seed: Seed of drawn donors.
    """

    kind: str
    seed: int = 0

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """Returns the replacement of the prompts' states."""
        of_prompts = ABLATIONS[self.kind].of_prompts
        assert of_prompts is not None
        return {
            point: of_prompts(values, self.seed) for point, values in patcher.state(prompts).items()
        }


def ablated(kind: str, seed: int) -> StandIn:
    """Returns the replacement of ablated outputs under a kind of ablation."""
    record = ABLATIONS[kind]
    if not record.needs_donors:
        return Zeros()
    return Donors(kind, seed) if record.draws_donors else Donors(kind)


@dataclass(frozen=True)
class OutputsOf:
    """The outputs of source prompts, aligned at the last token.

    If a source is shorter, earlier tokens keep the outputs of the prompt itself.
    """

    sources: tuple[Prompt, ...]

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
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

    sources: tuple[Prompt, ...]
    seed: int

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
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

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """Returns the prompts' states with the part on the heads."""
        state = patcher.state(prompts)
        outputs = patcher.heads_of(state, columns)  # (prompts, tokens, heads, width)
        part = outputs
        if self.head is not None:
            part = torch.zeros_like(outputs)
            part[:, :, self.head] = outputs[:, :, self.head]
        if self.tokens != "all":
            last = torch.zeros_like(part)
            last[:, -1] = part[:, -1]
            part = last if self.tokens == "last" else part - last
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

    operation_prompts: tuple[tuple[Prompt, ...], ...]
    neutral_prompts: tuple[Prompt, ...]
    operations: tuple[int, ...]
    seed: int | None = None

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
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
