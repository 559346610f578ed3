"""What a stress test reads from a model, as observations that are journaled one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from broca.stress_tests.patching import Patcher
from broca.stress_tests.prompts import Prompt
from broca.stress_tests.stand_ins import StandIn, Zeros

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class _Reading(ABC):
    """Something that is read from a model on some prompts.

    Attributes:
        prompts: Tokens, all of one length.
        columns: The heads that it is about.
    """

    kind: ClassVar[str]

    prompts: tuple[Prompt, ...]
    columns: tuple[int, ...]

    @property
    def key(self) -> str:
        """The prompts, the heads and everything else that it is made of."""
        return repr(self)

    @property
    def length(self) -> int:
        """Tokens of two passes over the prompts."""
        return 2 * sum(len(prompt) for prompt in self.prompts)

    @classmethod
    @torch.inference_mode()
    def observe(cls, engine: Any, observations: Sequence[Self]) -> list[Vector]:
        """Reads some observations; what several of them need of the intact model is read once."""
        with engine.model.in_use():
            patcher = Patcher(engine.model)
            vectors = [observation.read(patcher) for observation in observations]
        engine.observed_tokens += patcher.tokens
        return vectors

    @abstractmethod
    def read(self, patcher: Patcher) -> Vector:
        """The observation's vector."""


@dataclass(frozen=True)
class AnswerLogProbs(_Reading):
    """Log-probabilities of answer tokens while heads' outputs are replaced.

    Attributes:
        tokens: For every prompt the tokens that are read, equally many.
        stand_in: What replaces the outputs of the heads.
    """

    kind: ClassVar[str] = "answer log-probabilities"

    tokens: tuple[tuple[int, ...], ...]
    stand_in: StandIn = field(default_factory=Zeros)

    def read(self, patcher: Patcher) -> Vector:
        """The tokens' log-probabilities, prompt by prompt."""
        written = self.stand_in.state(patcher, self.prompts, self.columns)
        log_probs = patcher.log_probs(self.prompts, self.columns, written)
        return log_probs.gather(1, torch.tensor(self.tokens)).flatten().numpy()


@dataclass(frozen=True)
class HeadOutputs(_Reading):
    """The intact outputs of some heads at the last token."""

    kind: ClassVar[str] = "head outputs"

    def read(self, patcher: Patcher) -> Vector:
        """The outputs, head by head, prompt by prompt."""
        outputs = patcher.heads_of(patcher.state(self.prompts), self.columns)
        vector: Vector = outputs[:, -1].flatten().cpu().numpy()
        return vector


@dataclass(frozen=True)
class SelfPatch(_Reading):
    """What writing prompts' intact outputs into themselves changes."""

    kind: ClassVar[str] = "self-patch"

    def read(self, patcher: Patcher) -> Vector:
        """The largest change of any log-probability, prompt by prompt."""
        patched = patcher.log_probs(self.prompts, self.columns, patcher.state(self.prompts))
        change = patched - patcher.log_probs(self.prompts)
        vector: Vector = change.abs().nan_to_num().amax(1).numpy()
        return vector
