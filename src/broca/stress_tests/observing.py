"""The observations of a stress test, which are journaled one by one."""

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
    """An observation of a model on some prompts.

    Attributes:
        prompts: Tokens, all of the same length.
        columns: Columns of the heads.
    """

    kind: ClassVar[str]

    prompts: tuple[Prompt, ...]
    columns: tuple[int, ...]

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
    def observe(cls, engine: Any, observations: Sequence[Self]) -> list[Vector]:
        """Measures observations and computes shared outputs of the intact model once."""
        with engine.model.in_use():
            patcher = Patcher(engine.model)
            vectors = [observation.read(patcher) for observation in observations]
        engine.observed_tokens += patcher.tokens
        return vectors

    @abstractmethod
    def read(self, patcher: Patcher) -> Vector:
        """Returns the vector of the observation."""


@dataclass(frozen=True)
class AnswerLogProbs(_Reading):
    """Log-probabilities of answer tokens with heads' outputs replaced.

    Attributes:
        tokens: Answer tokens of every prompt, equally many.
        stand_in: Replacement of the outputs of the heads.
    """

    kind: ClassVar[str] = "answer log-probabilities"

    tokens: tuple[tuple[int, ...], ...]
    stand_in: StandIn = field(default_factory=Zeros)

    def read(self, patcher: Patcher) -> Vector:
        """Returns the tokens' log-probabilities, prompt by prompt."""
        written = self.stand_in.state(patcher, self.prompts, self.columns)
        log_probs = patcher.log_probs(self.prompts, self.columns, written)
        return log_probs.gather(1, torch.tensor(self.tokens)).flatten().numpy()


@dataclass(frozen=True)
class HeadOutputs(_Reading):
    """The intact outputs of some heads at the last token."""

    kind: ClassVar[str] = "head outputs"

    def read(self, patcher: Patcher) -> Vector:
        """Returns the outputs, head by head, prompt by prompt."""
        outputs = patcher.heads_of(patcher.state(self.prompts), self.columns)
        vector: Vector = outputs[:, -1].flatten().cpu().numpy()
        return vector


@dataclass(frozen=True)
class SelfPatch(_Reading):
    """The change when prompts' intact outputs are written into themselves."""

    kind: ClassVar[str] = "self-patch"

    def read(self, patcher: Patcher) -> Vector:
        """Returns the largest change of any log-probability, prompt by prompt."""
        patched = patcher.log_probs(self.prompts, self.columns, patcher.state(self.prompts))
        change = patched - patcher.log_probs(self.prompts)
        vector: Vector = change.abs().nan_to_num().amax(1).numpy()
        return vector
