"""Items and requests: what is asked, in tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RequestKind = Literal["loglikelihood", "generate_until"]


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the model, in lm-evaluation-harness's words.

    Attributes:
        kind: `loglikelihood` scores `continuation` after `context`; `generate_until` decodes
            greedily after `context`.
        context: Tokens of the prompt.
        continuation: Tokens whose log-likelihood is asked; empty for generation.
        stop: Strings that end a generation, checked on the decoded text.
        max_new_tokens: Longest generation.
        cut: Tokens cut from the left of the prompt to fit the model's context.
    """

    kind: RequestKind
    context: tuple[int, ...]
    continuation: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    max_new_tokens: int = 0
    cut: int = 0

    @property
    def length(self) -> int:
        """Tokens that a batch must hold for this request."""
        return len(self.context) + len(self.continuation) + self.max_new_tokens


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Answer to a `loglikelihood` request.

    Attributes:
        value: Sum of the log-probabilities of the continuation, in nats.
        greedy: Whether greedy decoding would produce it.
    """

    value: float
    greedy: bool


@dataclass(frozen=True, slots=True)
class Generation:
    """Answer to a `generate_until` request.

    Attributes:
        text: The decoded text up to the first stop string.
        tokens: How many tokens were generated.
    """

    text: str
    tokens: int


Output = LogLikelihood | Generation


@dataclass(frozen=True)
class Item:
    """One benchmark question.

    Attributes:
        task: Name of the task it belongs to.
        number: Position among the task's documents.
        prompt: Its text, for reports.
        target: The right answer as text, for reports.
        requests: What is asked of the model, in the order the task's metric wants the answers.
    """

    task: str
    number: int
    prompt: str
    target: str
    requests: tuple[Request, ...]
