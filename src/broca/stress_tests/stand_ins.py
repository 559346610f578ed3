"""What stands in for heads' outputs, as plain data that any process can turn into tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch

from broca.stress_tests.patching import Patcher, State
from broca.stress_tests.prompts import Prompt


class StandIn(Protocol):
    """What is written over the outputs of some heads."""

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State | None:
        """What every gate point is to meet; None for zeros."""


@dataclass(frozen=True)
class Zeros:
    """Zeros: the heads are ablated."""

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State | None:
        """None: gates of zero need no state."""
        return None


@dataclass(frozen=True)
class MeanOutputs:
    """The mean over all tokens of all prompts."""

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The same values at every token."""
        return {
            point: values.mean((0, 1), keepdim=True).expand_as(values)
            for point, values in patcher.state(prompts).items()
        }


@dataclass(frozen=True)
class ShuffledOutputs:
    """The outputs of another of the prompts, drawn by seed."""

    seed: int

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The prompts' states in another order."""
        order = torch.from_numpy(np.random.default_rng(self.seed).permutation(len(prompts)))
        return {
            point: values[order.to(values.device)]
            for point, values in patcher.state(prompts).items()
        }


@dataclass(frozen=True)
class OutputsOf:
    """The outputs of source prompts, aligned at the last token.

    Where the sources are shorter, earlier tokens keep the outputs of the prompt itself.
    """

    sources: tuple[Prompt, ...]

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The sources' states."""
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
    """The prompts' outputs plus random directions, as far away as those of the sources."""

    sources: tuple[Prompt, ...]
    seed: int

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The prompts' states with noise on the heads."""
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
        tokens: Which tokens are restored.
        head: Place of the only head that is restored; all of them by default.
        dimensions: Leading principal dimensions of the heads' joint outputs that are restored; all
            by default.
    """

    tokens: Literal["all", "last", "all but last"] = "all"
    head: int | None = None
    dimensions: int | None = None

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The prompts' states with the part on the heads."""
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
        operations: For each prompt the place of its operation.
        seed: Seed of random directions of the same norm that are added instead; None for the
            offset itself.
    """

    operation_prompts: tuple[tuple[Prompt, ...], ...]
    neutral_prompts: tuple[Prompt, ...]
    operations: tuple[int, ...]
    seed: int | None = None

    def state(
        self, patcher: Patcher, prompts: tuple[Prompt, ...], columns: tuple[int, ...]
    ) -> State:
        """The prompts' states with the offset at all heads."""
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
