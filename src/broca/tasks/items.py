"""Items with their requests and margins, and their split into `locate`, `confirm`, `report`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit

from broca.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

RequestKind = Literal["loglikelihood", "generate_until"]

STRETCH = 8
"""Number of average tokens whose joint probability represents a longer answer."""


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
        settings: Settings of a generation other than stop strings and length, as JSON: those of
            transformers that change the most likely token, such as `repetition_penalty`.
        paired: Whether the probability of each token of the continuation is relative to the most
            likely other token alone, not to the whole vocabulary.
    """

    kind: RequestKind
    context: tuple[int, ...]
    continuation: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    max_new_tokens: int = 0
    cut: int = 0
    settings: str = ""
    paired: bool = False


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
        first: The first of them; -1 if it is not known.
    """

    text: str
    tokens: int
    first: int = -1


Output = LogLikelihood | Generation


@dataclass(frozen=True)
class Margin:
    """The requests of the margin of an item, a continuous response; higher is better.

    For multiple choice the margin is log p(gold) - log sum of p over the other choices; for a
    single answer it is the mean log-probability of its tokens under teacher forcing. The accuracy
    can change while the margin does not (a generation that goes wrong after a good start), and the
    margin can change while the accuracy does not (a choice that stays first with less confidence);
    verification therefore uses the metric.

    A margin is unbounded, so that a row with a very negative margin outweighs a hundred others. The
    probability is a bounded function of it: of the right choices among all choices, or of the whole
    answer. It lies between 0 and 1 like the accuracy, so that tasks can be compared and averaged.
    An answer of more than `STRETCH` tokens counts as that many average tokens, because its
    probability would otherwise be near 0 on the intact model.

    A model that always generates the right answer may give it little probability, and lose most of
    that without a wrong answer. The match is the probability where each token of a single answer
    has the most likely other token as its only rival: it is above 0.5 for each token if greedy
    decoding gives the answer.

    Attributes:
        requests: The log-likelihood requests.
        gold: Position of the right request, or of several; None for a single answer under teacher
            forcing, whose value is the sum over one or several requests.
    """

    requests: tuple[Request, ...]
    gold: int | tuple[int, ...] | None

    def paired(self) -> Margin:
        """Returns the margin whose probability is a match; that of choices is one already."""
        if self.gold is not None:
            return self
        return Margin(tuple(replace(request, paired=True) for request in self.requests), None)

    def gold_alone(self) -> Margin | None:
        """Returns the margin of the first right answer only; None if it has several requests."""
        if self.gold is None:
            return self if len(self.requests) == 1 else None
        right, _ = self._sides
        return Margin((self.requests[right[0]],), None)

    def of(self, totals: Tensor) -> Tensor:
        """Returns the margin from the requests' log-likelihoods `(requests,)`, differentiable."""
        if self.gold is None:
            return totals.sum() / self._tokens
        right, wrong = self._sides
        return totals[right].logsumexp(0) - totals[wrong].logsumexp(0)

    def of_answers(self, answers: Sequence[LogLikelihood]) -> float:
        """Returns the margin from the engine's answers to the requests."""
        totals = np.array([answer.value for answer in answers])
        if self.gold is None:
            return float(totals.sum() / self._tokens)
        right, wrong = self._sides
        return float(np.logaddexp.reduce(totals[right]) - np.logaddexp.reduce(totals[wrong]))

    def probability(self, margin: float) -> float:
        """Returns the probability of a margin, between 0 and 1."""
        if self.gold is None:
            return float(np.exp(min(self._tokens, STRETCH) * margin))
        return float(expit(margin))

    def slope(self, margin: float) -> float:
        """Returns the derivative of the probability with respect to the margin."""
        probability = self.probability(margin)
        if self.gold is None:
            return min(self._tokens, STRETCH) * probability
        return probability * (1 - probability)

    @property
    def _tokens(self) -> int:
        return sum(len(request.continuation) for request in self.requests)

    @property
    def _sides(self) -> tuple[list[int], list[int]]:
        """Positions of the right requests and of the wrong ones."""
        right = [self.gold] if isinstance(self.gold, int) else list(self.gold or ())
        return right, [index for index in range(len(self.requests)) if index not in right]


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


FEWEST = 8
"""Fewest items of a task that can be split."""


@dataclass(frozen=True)
class SplitPart:
    """The items of a task of a group.

    Attributes:
        name: Name of the task; it determines the split together with the seed.
        scored: Positions of the scored items.
        located: Positions of items from another official split; empty without one.
    """

    name: str
    scored: list[int]
    located: list[int]


@dataclass(frozen=True)
class Split:
    """Three disjoint, sorted tuples of positions among a task's items.

    Attributes:
        locate: Items of the search.
        confirm: Items for the choice between candidates of the search.
        report: Items of all reported numbers.
    """

    locate: tuple[int, ...]
    confirm: tuple[int, ...]
    report: tuple[int, ...]


def seed_of(task: str) -> int:
    """Returns the seed of what is drawn by a task's name; of a file without its folder."""
    return zlib.crc32(Path(task).name.encode())


def split_parts(
    task: str, parts: Sequence[SplitPart], *, items: int, seed: int, asks: Sequence[str] = ()
) -> Split:
    """Splits the items of every task of a group into three disjoint parts.

    A quarter goes to `locate`, a quarter to `confirm` and half to `report`; each of the first two
    keeps at most `items`, and fewer if a quarter has fewer. Items from another official split go to
    `locate` and `confirm`, half each; all others of that task then go to `report`. No item asks in
    `locate` or `confirm` what one of another task asks in `report`.

    Args:
        task: Name of the group.
        parts: Its tasks.
        items: Maximum number of items of `locate` and of `confirm`, over all tasks.
        seed: Seed of the split, which depends on the names of the tasks too (`seed_of`).
        asks: What each item asks; empty if all ask something else.

    Raises:
        BadInput: There are too few items, or `items` is below 1.
    """
    if items < 1:
        raise BadInput(f"`items` must be at least 1, not {items}")
    scored = sum(len(part.scored) for part in parts)
    if scored < FEWEST:
        raise BadInput(
            f"task '{task}' has {scored} items: at least {FEWEST} are needed to locate, confirm "
            "and report on different ones"
        )
    locate: list[int] = []
    confirm: list[int] = []
    report: list[int] = []
    for part in parts:
        rng = np.random.default_rng([seed, seed_of(part.name)])
        order = rng.permutation(np.asarray(part.located or part.scored, dtype=np.intp)).tolist()
        first = len(order) // (2 if part.located else 4)
        second = len(order) if part.located else 2 * first
        locate += order[:first]
        confirm += order[first:second]
        report += part.scored if part.located else order[second:]
    if len(parts) > 1:
        rng = np.random.default_rng([seed, seed_of(task)])
        locate, confirm = rng.permutation(locate).tolist(), rng.permutation(confirm).tolist()
    if asks:
        reported = {asks[position] for position in report}
        locate = [position for position in locate if asks[position] not in reported]
        confirm = [position for position in confirm if asks[position] not in reported]
    if not locate or not confirm:
        raise BadInput(
            f"task '{task}' has {len(locate) + len(confirm)} items to locate and confirm on: at "
            "least one of each is needed"
        )
    parts_of_items = locate[:items], confirm[:items], report
    return Split(*(tuple(sorted(positions)) for positions in parts_of_items))
