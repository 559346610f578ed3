"""The margin: a continuous response that says more than right or wrong.

For multiple choice it is log p(gold) - log sum of p over the other choices; for generation the mean
log-probability of a correct answer's tokens under teacher forcing. Higher is better. The accuracy
can change while the margin does not (a generation that goes wrong after a good start) and the
reverse (a choice that stays first with less confidence); the metric itself has the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from broca.tasks.items import LogLikelihood, Request

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Margin:
    """How to ask for the margin of one item.

    Attributes:
        requests: Log-likelihoods to ask for.
        gold: Which of them is the right choice; None for a single answer under teacher forcing.
    """

    requests: tuple[Request, ...]
    gold: int | None

    def of(self, totals: Tensor) -> Tensor:
        """The margin from the requests' log-likelihoods `(requests,)`, differentiable."""
        if self.gold is None:
            return totals[0] / len(self.requests[0].continuation)
        others = [index for index in range(len(self.requests)) if index != self.gold]
        return totals[self.gold] - totals[others].logsumexp(0)

    def of_answers(self, answers: Sequence[LogLikelihood]) -> float:
        """The margin from the engine's answers to the requests."""
        totals = np.array([answer.value for answer in answers])
        if self.gold is None:
            return float(totals[0] / len(self.requests[0].continuation))
        return float(totals[self.gold] - np.logaddexp.reduce(np.delete(totals, self.gold)))
