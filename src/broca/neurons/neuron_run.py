"""Measures neurons through a run: their scores on items, and what scaling them changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.executors.base import WeightDelta
from broca.measurement import Plan
from broca.neurons.gradients import IntegratedGradients, steps_of
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.selection import Columns, item_set
from broca.options import RuleOptions
from broca.results.base import Interval
from broca.runs.run import Run
from broca.runs.task_sets import Part
from broca.tasks import Benchmark, Request
from broca.verification import Trial
from broca.verification.statistics import bootstrap_interval, interval_of

INTACT: Columns = np.zeros(0, dtype=np.intp)
"""The set of no neurons."""

Places = NDArray[np.intp]
"""Positions of items in the bank of a run."""

Values = NDArray[np.float64]

_INTERVALS = 11
"""What separates the random numbers of intervals from all others of a seed."""


@dataclass(frozen=True)
class ItemScores:
    """The scores of neurons on some items.

    Attributes:
        scores: `(items, neurons)`.
        activations: Mean activation before the answer's tokens, `(items, neurons)`.
        probability: p(gold token), `(items,)`.
        residual: Error of the steps against completeness, `(items,)`.
    """

    scores: NDArray[np.float32]
    activations: NDArray[np.float32]
    probability: NDArray[np.float32]
    residual: NDArray[np.float32]


@dataclass(frozen=True)
class Responses:
    """What the model answered to some items with neurons scaled.

    Attributes:
        scores: Of the tasks' own metrics, higher is better, `(sets, items)`.
        log_probability: Of the gold answer as a whole, in nats, `(sets, items)`.
    """

    scores: NDArray[np.float64]
    log_probability: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NeuronRun:
    """A run on a model whose neurons can be ablated.

    Attributes:
        run: It measures; the margin of every item is that of its gold answer alone.
        neurons: The model's neurons.
        rule: Which neurons stand out.
        seed: Seed of everything random.
    """

    run: Run
    neurons: NeuronModel
    rule: RuleOptions = field(default_factory=RuleOptions)
    seed: int = 0

    def places(self, name: str, part: Part = "locate") -> Places:
        """Positions of a task's items of one part."""
        return self.run.tasks.places[part][name]

    def benchmark(self, name: str) -> Benchmark:
        """A task of the run."""
        return self.run.tasks.benchmarks[name]

    def documents(self, places: Places) -> list[Any]:
        """The documents that some items were made of."""
        bank = (self.run.bank[place] for place in places.tolist())
        return [benchmark.document(item) for benchmark, item in bank]

    def golds(self, places: Places) -> list[Request]:
        """The gold answers of some items, under teacher forcing."""
        margins = [
            benchmark.margin(item)
            for benchmark, item in (self.run.bank[place] for place in places.tolist())
        ]
        return [margin.requests[0] for margin in margins if margin is not None]

    def item_scores(self, places: Places, *, integrated: bool = True) -> ItemScores:
        """Scores every neuron for every item.

        Args:
            places: The items.
            integrated: Take gradients at as many points from none to all of the activation as the
                rule says; else at the whole activation, which is gradient x activation.
        """
        alphas = steps_of(self.rule.steps) if integrated else (1.0,)
        depth = self.neurons.upward
        observations = [
            IntegratedGradients(
                gold.context,
                gold.continuation,
                alphas,
                length=len(gold.context) + round(3 * len(gold.continuation) * len(alphas) * depth),
            )
            for gold in self.golds(places)
        ]
        vectors = np.stack(self.run.observe(observations))
        count = len(self.neurons)
        return ItemScores(
            scores=vectors[:, :count],
            activations=vectors[:, count : 2 * count],
            probability=vectors[:, -2],
            residual=vectors[:, -1],
        )

    def scaled(self, places: Places, sets: Sequence[Columns], factor: float = 0.0) -> Responses:
        """Answers all items under every set: the tasks' metrics and the gold answers' likelihood.

        Args:
            places: The items.
            sets: Neurons whose activations are multiplied, at every token.
            factor: What they are multiplied with: 0 erases, 2 amplifies.
        """
        plan = replace(Plan.crossed(self.neurons.masks(sets), places), scale=_scale(factor))
        shape = (len(sets), len(places))
        index = np.repeat(np.arange(len(sets)), len(places))
        likelihood = self.log_probability(np.tile(places, len(sets)), sets, index, factor=factor)
        return Responses(self.run.measure(plan).responses.reshape(shape), likelihood.reshape(shape))

    def log_probability(
        self,
        places: Places,
        sets: Sequence[Columns],
        index: Sequence[int] | NDArray[np.intp],
        *,
        factor: float = 0.0,
        role: str = "scores",
    ) -> NDArray[np.float64]:
        """Log-probability of whole gold answers, in nats, `(rows,)`.

        Args:
            places: For every row its item, `(rows,)`.
            sets: Neurons that are scaled.
            index: For every row its set, `(rows,)`.
            factor: What the neurons are multiplied with.
            role: What the rows are for: `search` or `scores`.
        """
        plan = Plan(
            self.neurons.masks(sets),
            np.asarray(index, dtype=np.intp),
            places,
            response="margin",
            scale=_scale(factor),
        )
        tokens = np.array([len(gold.continuation) for gold in self.golds(places)])
        measured: NDArray[np.float64] = self.run.measure(plan, role=role).responses * tokens
        return measured

    def slopes(self, places: Places, sets: Sequence[Columns]) -> NDArray[np.float32]:
        """Derivatives of the gold answers' mean log-probability, row by row with its own set.

        Args:
            places: For every row its item, `(rows,)`.
            sets: For every row the neurons that are ablated.

        Returns:
            By every neuron's gate, `(rows, neurons)`, in nats a token.
        """
        plan = Plan(
            self.neurons.masks(sets),
            np.arange(len(sets), dtype=np.intp),
            places,
            gradients=True,
            response="margin",
        )
        return self.run.measure(plan, role="search").slopes()[:, self.neurons.gates]

    def item_sets(self, places: Places) -> list[Columns]:
        """The neurons that stand out on every item by itself."""
        scores = self.item_scores(places).scores
        return [item_set(item, self.neurons.layers, self.rule) for item in scores]

    def changed(self, delta: WeightDelta) -> NeuronRun:
        """The same run on the model with changed weights."""
        return replace(self, run=self.run.changed(delta))

    @property
    def trial(self) -> Trial:
        """The tasks with their `report` items."""
        return self.run.tasks.trial("report")

    def difference(self, first: Values, second: Values) -> Interval:
        """The mean difference of paired values and its bootstrap interval."""
        return bootstrap_interval(first, second, seed=[self.seed, _INTERVALS])

    def mean(self, values: Sequence[float] | Values) -> Interval:
        """The mean of some values and its bootstrap interval; NaN values are left out.

        Where there are no others, the interval is NaN.
        """
        known = np.asarray(values, dtype=np.float64)
        known = known[~np.isnan(known)]
        if not len(known):
            return Interval(float("nan"), float("nan"), float("nan"))
        return self.difference(known, np.zeros(len(known)))

    def lost(self, name: str, before: Values, after: Values) -> Interval:
        """What a task's score loses between responses to its `report` items."""
        aggregate = self.trial.aggregation(name, before)
        seed = [self.seed, _INTERVALS]
        return bootstrap_interval(before, after, seed=seed, aggregate=aggregate)

    def score(self, name: str, values: Values) -> Interval:
        """A task's score over responses to its `report` items, in its own direction."""
        sign = 1.0 if self.benchmark(name).higher_is_better else -1.0
        aggregate = self.trial.aggregation(name, values)
        if aggregate is None:
            return self.mean(sign * values)
        rng = np.random.default_rng([self.seed, _INTERVALS])
        draws = [rng.integers(len(values), size=len(values)) for _ in range(2000)]
        scores = np.array([sign * aggregate(values[drawn], drawn) for drawn in draws])
        return interval_of(self.trial.score(name, values), scores)


def _scale(factor: float) -> float:
    if not np.isfinite(factor) or factor == 1:
        raise BadInput(f"neurons are multiplied with a number other than 1, not with {factor:g}")
    return factor
