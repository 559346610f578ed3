"""Items and their requests, in tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RequestKind = Literal["loglikelihood", "generate_until"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the model, as in lm-evaluation-harness.

    Attributes:
        kind: `loglikelihood` scores `continuation` after `context`; `generate_until` decodes
            greedily after `context`.
        context: Tokens of the prompt.
        continuation: Tokens whose log-likelihood is requested; empty for a generation.
        stop: Strings that end a generation, checked on the decoded text.
        max_new_tokens: Maximum number of tokens of a generation.
        cut: Number of tokens that were removed from the left of the prompt to fit the model's
            context.
        merged: Whether the continuation begins with the last token of the prompt, because it has
            none of its own.
        settings: Settings of a generation other than stop strings and length, as JSON: those of
            transformers that change the most likely token, such as `repetition_penalty`.
    """

    kind: RequestKind
    context: tuple[int, ...]
    continuation: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    max_new_tokens: int = 0
    cut: int = 0
    merged: bool = False
    settings: str = ""

    @property
    def length(self) -> int:
        """Number of tokens of this request in a batch."""
        return len(self.context) + len(self.continuation) + self.max_new_tokens


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Answer to a `loglikelihood` request.

    Attributes:
        value: Sum of the log-probabilities of the continuation, in nats.
        greedy: Whether greedy decoding gives the continuation.
    """

    value: float
    greedy: bool


@dataclass(frozen=True, slots=True)
class Generation:
    """Answer to a `generate_until` request.

    Attributes:
        text: The decoded text up to the first stop string.
        tokens: Number of generated tokens.
    """

    text: str
    tokens: int


Output = LogLikelihood | Generation


@dataclass(frozen=True)
class Item:
    """A benchmark question.

    Attributes:
        task: Name of its task.
        number: Position among the task's documents.
        prompt: The prompt as text, for reports.
        target: The right answer as text, for reports.
        requests: Requests to the model, in the order in which the task's metric expects the
            answers.
    """

    task: str
    number: int
    prompt: str
    target: str
    requests: tuple[Request, ...]
