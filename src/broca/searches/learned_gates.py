"""Learned gates: trains the probability of every gate twice, pushed open and pushed closed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.records import Method

DEFAULT_STEPS = 24
DEFAULT_BATCH = 16
_FEWEST_STEPS = 8
_START = 2.0
"""Initial logit of every gate: open in 88 % of the rows."""
_LIMIT = 4.0
"""Maximum absolute logit, so that every gate can still change."""
_TRAVEL = 2 * (_START + _LIMIT)
"""Total change of a logit by the push alone: twice the distance that closes a gate."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Trained:
    """Gates after one training.

    Attributes:
        gates: Mean probability of being open in the second half of the steps, `(components,)`.
        slopes: Mean slope of the response in each gate in the second half, `(components,)`.
    """

    gates: Floats
    slopes: Floats


@dataclass(frozen=True, kw_only=True)
class LearnedGates:
    """Causal head gating with random binary gates: needed, harmful and irrelevant components.

    Every component has a probability of being open. A step draws the gates of each row of a batch,
    takes the gradient of the response in them, and moves the logits along it (mirror ascent), with
    a push towards open in one training and towards closed in the other. A component that stays open
    although pushed closed is needed (facilitating), a component that closes although pushed open is
    harmful (interfering), and a component that follows both pushes is irrelevant. The effect is the
    slope under the push that the component resists.

    Gates are binary instead of fractional, so that every row is an ordinary ablation, which the
    journal keeps for other methods. Cost: 3 x (2 x steps + 1) x batch rows.

    Attributes:
        push: Size of the push, as a share of the largest initial slope.
        steps: Number of steps of each training.
        batch: Rows of a step.
    """

    push: float = 0.1
    steps: int = DEFAULT_STEPS
    batch: int = DEFAULT_BATCH

    def __post_init__(self) -> None:
        if not 0 < self.push < 1:
            raise BadInput(
                f"the push of learned-gates must lie between 0 and 1, not at {self.push:g}"
            )
        if self.steps < _FEWEST_STEPS or self.batch < 1:
            raise BadInput(
                f"learned-gates takes {_FEWEST_STEPS} steps or more of 1 row or more, not "
                f"{self.steps} of {self.batch}"
            )

    def require(self, problem: Problem) -> tuple[int, int]:
        """Returns the steps of each training and the rows of a step that the budget allows."""
        if problem.rows is None:
            return self.steps, self.batch
        fewest = 3 * (2 * _FEWEST_STEPS + 1)
        if problem.rows < fewest:
            raise BadInput(
                f"`rows` {problem.rows} is too few for learned-gates: it takes at least "
                f"{_FEWEST_STEPS} steps twice; set `rows` to {fewest} or more, or use another "
                "method"
            )
        batches = problem.rows // 3
        steps = max(_FEWEST_STEPS, min(self.steps, (batches // 4 - 1) // 2))
        return steps, batches // (2 * steps + 1)

    def generate(self, problem: Problem) -> SearchGenerator:
        """Trains the gates under both pushes."""
        steps, batch = self.require(problem)
        training = _Training(problem, steps, batch)
        start = np.full(problem.components, _START)
        largest = float(np.abs((yield from training.slopes(start))).max())
        record = {"push": self.push, "steps": steps, "batch": batch}
        if largest == 0:
            nothing = np.zeros(problem.components)
            order = tuple(range(problem.components))
            return Ranking(nothing, order, (), "the response has no slope in any gate", record)
        opened = yield from training.train(start, self.push * largest)
        closed = yield from training.train(start, -self.push * largest)
        needed = closed.gates >= 0.5
        harms = opened.gates < 0.5
        effects = -closed.gates * np.maximum(closed.slopes, 0)
        effects -= (1 - opened.gates) * np.minimum(opened.slopes, 0)
        order = tuple(int(column) for column in np.lexsort((effects, ~needed)))
        selected = tuple(c for c in order[: problem.k] if needed[c] and effects[c] < 0)
        groups = {
            "facilitating": tuple(c for c in order if needed[c]),
            "interfering": tuple(c for c in order if harms[c] and not needed[c]),
        }
        return Ranking(
            effects,
            order,
            selected,
            "" if selected else "no gate stays open against the push to close",
            record,
            groups=groups,
        )


@dataclass
class _Training:
    """Measures the slopes of drawn gates and moves the gates along them.

    Attributes:
        problem: The problem that is solved.
        steps: Number of steps of each training.
        batch: Rows of a step.
    """

    problem: Problem
    steps: int
    batch: int

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.problem.seed, 0x6A7E])
        self._measured = 0

    def train(self, start: Floats, push: float) -> Generator[Plan, Measurement, _Trained]:
        """Trains the gates under one push."""
        from scipy.special import expit

        logits = start.copy()
        rate = _TRAVEL / (self.steps * abs(push))
        gates, slopes = [], []
        for _ in range(self.steps):
            slope = yield from self.slopes(logits)
            logits = np.clip(logits + rate * (slope + push), -_LIMIT, _LIMIT)
            gates.append(expit(logits))
            slopes.append(slope)
        later = self.steps // 2
        return _Trained(np.mean(gates[later:], axis=0), np.mean(slopes[later:], axis=0))

    def slopes(self, logits: Floats) -> Generator[Plan, Measurement, Floats]:
        """Measures the mean gradient over a batch of random gates, `(components,)`."""
        from scipy.special import expit

        masks = self._rng.random((self.batch, len(logits))) >= expit(logits)
        places = (self._measured + np.arange(self.batch)) % len(self.problem.items)
        self._measured += self.batch
        measurement = yield Plan(
            masks, np.arange(self.batch), self.problem.items[places], gradients=True
        )
        slopes: Floats = measurement.slopes().mean(axis=0, dtype=np.float64)
        return slopes


METHOD = Method(
    name="learned-gates", order=12, make=LearnedGates, response="margin", needs_gradients=True,
    measures="gates trained under a push to open and one to close",
    answers="which heads are needed, harmful or irrelevant",
    rows="2,352",
    usual_rows=lambda p: 2352,
    source="Nam et al., arXiv 2505.13737; it differs in its binary gates and its optimizer",
)  # fmt: skip
