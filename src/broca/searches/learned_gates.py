"""Learned gates: train how likely each gate is open, twice, pushed open and pushed closed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator

DEFAULT_STEPS = 24
DEFAULT_BATCH = 16
_FEWEST_STEPS = 8
_START = 2.0
"""Logit that every gate starts at: open in 88 % of the rows."""
_LIMIT = 4.0
"""Logits stay within this of 0, so that no gate is given up for good."""
_TRAVEL = 2 * (_START + _LIMIT)
"""Distance that the push alone moves a logit in all steps: twice what closes a gate."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Trained:
    """Gates after one training.

    Attributes:
        gates: Mean probability of being open in the later half, `(components,)`.
        slopes: Mean slope of the response in each gate in that half, `(components,)`.
    """

    gates: Floats
    slopes: Floats


class LearnedGates(GeneratorSearch):
    """Causal head gating with drawn gates: needed, harmful and irrelevant components.

    Every component has a probability of being open. A step draws the gates of each row of a batch,
    takes the gradient of the response in them, and moves the logits along it (mirror ascent), with
    a push towards open in one training and towards closed in the other. What stays open although
    pushed closed is needed (facilitating); what closes although pushed open is in the way
    (interfering); what follows both pushes is irrelevant. The effect is the slope under the push
    that it withstands.

    Gates are drawn rather than fractional: every row is an ordinary ablation, which the journal
    knows and other methods can share. Cost: 3 x (2 x steps + 1) x batch rows.

    Args:
        problem: What to solve.
        push: The push, as a share of the largest slope at the start.
        steps: Steps of each training.
        batch: Rows of a step.

    Source: Nam et al., arXiv 2505.13737; it differs in drawing gates and in the optimizer.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        push: float = 0.1,
        steps: int = DEFAULT_STEPS,
        batch: int = DEFAULT_BATCH,
    ) -> None:
        problem.require_gradients("learned-gates")
        if not 0 < push < 1:
            raise BadInput(f"the push of learned-gates must lie between 0 and 1, not at {push:g}")
        if steps < _FEWEST_STEPS or batch < 1:
            raise BadInput(
                f"learned-gates takes {_FEWEST_STEPS} steps or more of 1 row or more, not {steps} "
                f"of {batch}"
            )
        if problem.rows is not None:
            fewest = 3 * (2 * _FEWEST_STEPS + 1)
            if problem.rows < fewest:
                raise BadInput(
                    f"--rows {problem.rows} is too few for learned-gates: it takes at least "
                    f"{_FEWEST_STEPS} steps twice; use --rows {fewest} or more, or another method"
                )
            batches = problem.rows // 3
            steps = max(_FEWEST_STEPS, min(steps, (batches // 4 - 1) // 2))
            batch = batches // (2 * steps + 1)
        self._problem = problem
        self._push, self._steps, self._batch = push, steps, batch
        self._rng = np.random.default_rng([problem.seed, 0x6A7E])
        self._asked = 0
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        problem = self._problem
        start = np.full(problem.components, _START)
        largest = float(np.abs((yield from self._slopes(start))).max())
        record = {"push": self._push, "steps": self._steps, "batch": self._batch}
        if largest == 0:
            nothing = np.zeros(problem.components)
            order = tuple(range(problem.components))
            return Ranking(nothing, order, (), "the response has no slope in any gate", record)
        opened = yield from self._train(start, self._push * largest)
        closed = yield from self._train(start, -self._push * largest)
        needed = closed.gates >= 0.5
        harms = opened.gates < 0.5
        effects = -closed.gates * np.maximum(closed.slopes, 0)
        effects -= (1 - opened.gates) * np.minimum(opened.slopes, 0)
        rated = np.lexsort((effects, ~needed))
        selected = tuple(int(c) for c in rated[: problem.k] if needed[c] and effects[c] < 0)
        in_the_way = [int(column) for column in rated if harms[column] and not needed[column]]
        groups = {
            "facilitating": tuple(int(column) for column in rated if needed[column]),
            "interfering": tuple(in_the_way),
        }
        return Ranking(
            effects,
            tuple(int(column) for column in rated),
            selected,
            "" if selected else "no gate stays open against the push to close",
            record,
            groups=groups,
        )

    def _train(self, start: Floats, push: float) -> Generator[Plan, Measurement, _Trained]:
        """Trains the gates under one push."""
        logits = start.copy()
        rate = _TRAVEL / (self._steps * abs(push))
        gates, slopes = [], []
        for _ in range(self._steps):
            slope = yield from self._slopes(logits)
            logits = np.clip(logits + rate * (slope + push), -_LIMIT, _LIMIT)
            gates.append(expit(logits))
            slopes.append(slope)
        later = self._steps // 2
        return _Trained(np.mean(gates[later:], axis=0), np.mean(slopes[later:], axis=0))

    def _slopes(self, logits: Floats) -> Generator[Plan, Measurement, Floats]:
        """Mean gradient of the response over a batch of drawn gates, `(components,)`."""
        masks = self._rng.random((self._batch, len(logits))) >= expit(logits)
        places = (self._asked + np.arange(self._batch)) % len(self._problem.items)
        self._asked += self._batch
        measurement = yield Plan(
            masks, np.arange(self._batch), self._problem.items[places], gradients=True
        )
        slopes: Floats = measurement.slopes().mean(axis=0, dtype=np.float64)
        return slopes
