"""Measures neurons in a run: their scores on items, and the effect of scaling them."""

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
from broca.runs.progress import Stages
from broca.runs.run import Run
from broca.runs.task_sets import Part
from broca.tasks import Benchmark, Request
from broca.verification import Trial
from broca.verification.statistics import bootstrap_interval, interval_of

ItemPlaces = NDArray[np.intp]
"""Positions of items in the bank of a run."""

Values = NDArray[np.float64]

_INTERVALS = 11
"""Distinguishes the random numbers of intervals from others of the same seed."""


@dataclass(frozen=True)
class ItemScores:
    """The scores of neurons on some items.

    Attributes:
        scores: Scores, `(items, neurons)`.
        activations: Mean activation before the answer's tokens, `(items, neurons)`.
        probability: p(gold token), `(items,)`.
        residual: Completeness error of the steps, `(items,)`.
    """

    scores: NDArray[np.float32]
    activations: NDArray[np.float32]
    probability: NDArray[np.float32]
    residual: NDArray[np.float32]


@dataclass(frozen=True)
class Responses:
    """The responses to some items with neurons scaled.

    Attributes:
        scores: Scores in the tasks' own metrics, higher is better, `(sets, items)`.
        log_probability: Log-probability of the whole gold answer, in nats, `(sets, items)`.
    """

    scores: NDArray[np.float64]
    log_probability: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NeuronRun:
    """A run on a model whose neurons can be ablated.

    Attributes:
        run: The run; the margin of every item is that of its gold answer.
        neurons: The model's neurons.
        rule: The rule by which neurons are selected.
        seed: Seed of all random draws.
    """

    run: Run
    neurons: NeuronModel
    rule: RuleOptions = field(default_factory=RuleOptions)
    seed: int = 0

    @property
    def stages(self) -> Stages:
        """The stages of the run."""
        return self.run.stages

    def places(self, name: str, part: Part = "locate") -> ItemPlaces:
        """Returns the positions of a task's items of a part."""
        return self.run.tasks.places[part][name]

    def benchmark(self, name: str) -> Benchmark:
        """Returns a task of the run."""
        return self.run.tasks.benchmarks[name]

    def documents(self, places: ItemPlaces) -> list[Any]:
        """Returns the documents of some items."""
        bank = (self.run.bank[place] for place in places.tolist())
        return [benchmark.document(item) for benchmark, item in bank]

    def golds(self, places: ItemPlaces) -> list[Request]:
        """Returns the gold answers of some items, under teacher forcing."""
        bank = (self.run.bank[place] for place in places.tolist())
        margins = (benchmark.margin(item) for benchmark, item in bank)
        return [margin.requests[0] for margin in margins if margin is not None]

    def item_scores(self, places: ItemPlaces, *, integrated: bool = True) -> ItemScores:
        """Scores every neuron for every item.

        Args:
            places: The items.
            integrated: Whether to integrate gradients over the steps of the rule; otherwise the
                gradient is taken at the full activation (gradient x activation).
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

    def scaled(self, places: ItemPlaces, sets: Sequence[Columns], factor: float = 0.0) -> Responses:
        """Measures all items under every set: the tasks' metrics and the gold answers' likelihood.

        Args:
            places: The items.
            sets: Neurons whose activations are multiplied, at every token.
            factor: Factor of the activations: 0 erases, 2 amplifies.
        """
        plan = replace(Plan.crossed(self.neurons.masks(sets), places), scale=_scale(factor))
        shape = (len(sets), len(places))
        index = np.repeat(np.arange(len(sets)), len(places))
        likelihood = self.log_probability(np.tile(places, len(sets)), sets, index, factor=factor)
        return Responses(self.run.measure(plan).responses.reshape(shape), likelihood.reshape(shape))

    def log_probability(
        self,
        places: ItemPlaces,
        sets: Sequence[Columns],
        index: Sequence[int] | NDArray[np.intp],
        *,
        factor: float = 0.0,
        role: str = "scores",
    ) -> NDArray[np.float64]:
        """Measures the log-probability of whole gold answers, in nats, `(rows,)`.

        Args:
            places: Item of every row, `(rows,)`.
            sets: Neurons that are scaled.
            index: Set of every row, `(rows,)`.
            factor: Factor of the neurons' activations.
            role: Purpose of the rows: `search` or `scores`.
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

    def slopes(self, places: ItemPlaces, sets: Sequence[Columns]) -> NDArray[np.float32]:
        """Measures the derivatives of the gold answers' mean log-probability, row by row.

        Args:
            places: Item of every row, `(rows,)`.
            sets: Ablated neurons of every row.

        Returns:
            Derivatives with respect to every neuron's gate, `(rows, neurons)`, in nats per token.
        """
        plan = Plan(
            self.neurons.masks(sets),
            np.arange(len(sets), dtype=np.intp),
            places,
            gradients=True,
            response="margin",
        )
        return self.run.measure(plan, role="search").slopes()[:, self.neurons.gates]

    def item_sets(self, places: ItemPlaces) -> list[Columns]:
        """Returns the neurons that stand out on each item."""
        scores = self.item_scores(places).scores
        return [item_set(item, self.neurons.layers, self.rule) for item in scores]

    def changed(self, delta: WeightDelta) -> NeuronRun:
        """Returns the run on the model with changed weights."""
        return replace(self, run=self.run.changed(delta))

    @property
    def trial(self) -> Trial:
        """Returns the tasks with their `report` items."""
        return self.run.tasks.trial("report")

    def difference(self, first: Values, second: Values) -> Interval:
        """Returns the mean difference of paired values with its bootstrap interval."""
        return bootstrap_interval(first, second, seed=[self.seed, _INTERVALS])

    def mean(self, values: Sequence[float] | Values) -> Interval:
        """Returns the mean of some values with its bootstrap interval; NaN values are left out.

        If all values are NaN, the interval is NaN.
        """
        numbers = np.asarray(values, dtype=np.float64)
        numbers = numbers[~np.isnan(numbers)]
        if not len(numbers):
            return Interval(float("nan"), float("nan"), float("nan"))
        return self.difference(numbers, np.zeros(len(numbers)))

    def lost(self, name: str, before: Values, after: Values) -> Interval:
        """Returns the loss of a task's score between responses to its `report` items."""
        aggregate = self.trial.aggregation(name, before)
        seed = [self.seed, _INTERVALS]
        return bootstrap_interval(before, after, seed=seed, aggregate=aggregate)

    def score(self, name: str, values: Values) -> Interval:
        """Returns a task's score from responses to its `report` items, as its metric counts."""
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
        raise BadInput(f"the factor of neurons must be a number other than 1, not {factor:g}")
    return factor
