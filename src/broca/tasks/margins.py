"""The margin and the probability, continuous responses, and the answers that they compare.

For multiple choice the margin is log p(gold) - log sum of p over the other choices; for a single
answer it is the mean log-probability of its tokens under teacher forcing. Higher is better. The
accuracy can change while the margin does not (a generation that goes wrong after a good start), and
the margin can change while the accuracy does not (a choice that stays first with less confidence);
verification therefore uses the metric.

A margin is unbounded, so that a row with a very negative margin outweighs a hundred others. The
probability is a bounded function of the margin: of the right choices among all choices, or of the
whole answer. It lies between 0 and 1 like the accuracy, so that tasks can be compared and averaged.
An answer of more than `STRETCH` tokens counts as that many average tokens, because its probability
would otherwise be near 0 on the intact model.
"""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from broca.errors import BadInput
from broca.options import Reference, TaskOptions
from broca.tasks.items import LogLikelihood, Request

if TYPE_CHECKING:
    from torch import Tensor

STRETCH = 8
"""Number of average tokens whose joint probability represents a longer answer."""


@dataclass(frozen=True)
class Margin:
    """The requests of the margin of an item.

    Attributes:
        requests: The log-likelihood requests.
        gold: Position of the right request, or of several; None for a single answer under teacher
            forcing, whose value is the sum over one or several requests.
    """

    requests: tuple[Request, ...]
    gold: int | tuple[int, ...] | None

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


def reference_of(options: TaskOptions) -> str | Reference:
    """Returns `own`, `gold`, or the function that gives right answers.

    Raises:
        BadInput: The file or the function does not exist, or cannot be loaded.
    """
    named: str | Reference = options.reference
    if not isinstance(named, str) or named in ("own", "gold"):
        return named
    file, _, name = named.rpartition(":")
    path = Path(file).expanduser()
    if path.suffix != ".py" or not path.is_file():
        raise BadInput(
            f"`reference` '{named}': '{file}' is not a Python file; use FILE.py:FUNCTION"
        )
    try:
        function: Any = runpy.run_path(str(path)).get(name)
    except Exception as error:  # the user's file may raise anything
        raise BadInput(
            f"`reference` '{named}': the file could not be run: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise BadInput(f"`reference` '{named}': '{file}' has no function '{name}'")
    return function  # type: ignore[no-any-return]
