"""Measures neurons in a run: their scores on items, and the effect of scaling them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.engine import WeightDelta
from broca.errors import BadInput
from broca.measurement import Plan
from broca.neurons.gradients import IntegratedGradients, ItemScores, steps_of
from broca.neurons.items import left_out, neuron_tasks
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.selection import Columns, item_set, standardized
from broca.options import DataOptions, RuleOptions, flat
from broca.results.base import Interval, ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronExperiment, NeuronSet, Shape
from broca.runs.progress import Stages
from broca.runs.run import Run, model_info
from broca.runs.session import open_run
from broca.runs.task_sets import Part, TaskSet, other_tasks
from broca.tasks import Benchmark, Request, Task
from broca.verification.statistics import bootstrap_interval, interval_of

ItemPlaces = NDArray[np.intp]
"""Positions of items in the bank of a run."""

Values = NDArray[np.float64]

_INTERVALS = 11
"""Distinguishes the random numbers of intervals from others of the same seed."""


@contextmanager
def open_neurons(
    options: Any, named: Sequence[str | Task | Sequence[str | Task]] = (), **settings: Any
) -> Iterator[NeuronRun]:
    """Opens a model whose components are its neurons.

    Args:
        options: The options of the verb.
        named: The tasks that the verb will load, whose names are checked before the model is
            loaded.
        settings: Settings of the run in place of the options of the same name.

    Raises:
        BrocaError: The model cannot be loaded, or it has no neurons that can be ablated.
    """
    run_options = options.run_options
    loading = replace(run_options.model_options, components="neurons")
    objects = ("model", "task", "tasks", "others", "run_options")
    settings = {**flat(options.decisive(without=objects)), **settings}
    data = getattr(options, "data_options", None)
    with open_run(
        options.model, replace(run_options, model_options=loading), others=named
    ) as opened:
        yield NeuronRun(
            opened,
            NeuronModel(opened.model),
            options.rule_options,
            settings["seed"],
            data if isinstance(data, DataOptions) else DataOptions(),
            settings,
        )


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
        data: How data sets are read.
        settings: The options that identify the verb's run, besides weights and items.
    """

    run: Run
    neurons: NeuronModel
    rule: RuleOptions = field(default_factory=RuleOptions)
    seed: int = 0
    data: DataOptions = field(default_factory=DataOptions)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def deltas(self) -> Path | None:
        """The folder of trained weights, beside the journal; None for a journal in memory."""
        journal = self.run.workspace.path
        return None if journal is None else Path(journal).parent / "deltas"

    def names(
        self, task: str | Task, others: str | Sequence[str | Task] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Returns the names of a task and of others, which become settings.

        Raises:
            BadInput: The task itself is named among the others.
        """
        catalog = self.run.catalog
        name = catalog.name_of(task)
        names = other_tasks(name, others, self.run.model, catalog)
        self.settings["task_options"] = self.run.options.task_options.to_dict()
        self.settings.update(
            {"task": name, "others": list(names)} if name else {"tasks": list(names)}
        )
        return name, names

    def on(self, verb: str, tasks: TaskSet | Mapping[Part, Sequence[str]]) -> NeuronRun:
        """Returns the run of a verb on some tasks.

        Args:
            verb: Name of the verb.
            tasks: Tasks with their items; or, for each part, the names of the tasks that need it.
        """
        if not isinstance(tasks, TaskSet):
            self.stages.enter("building the tasks")
            report_items = self.settings.get("report_items", 0)
            tasks = neuron_tasks(self.run, tasks, self.data, report_items=report_items)
        settings = {"verb": f"neurons {verb}", **self.settings}
        return replace(self, run=self.run.on(tasks, settings=settings))

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

    def relation(self, first: str, second: str) -> str:
        """Returns the relation of two tasks: `same data`, or same or other capability."""
        if first == second:
            return "same data"
        same = self.benchmark(first).capability == self.benchmark(second).capability
        return "same capability" if same else "other capability"

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
        return ItemScores.of(self.run.observe(observations))

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
    ) -> NDArray[np.float64]:
        """Measures the log-probability of whole gold answers, in nats, `(rows,)`.

        Args:
            places: Item of every row, `(rows,)`.
            sets: Neurons that are scaled.
            index: Set of every row, `(rows,)`.
            factor: Factor of the neurons' activations.
        """
        plan = Plan(
            self.neurons.masks(sets),
            np.asarray(index, dtype=np.intp),
            places,
            response="margin",
            scale=_scale(factor),
        )
        tokens = np.array([len(gold.continuation) for gold in self.golds(places)])
        measured: NDArray[np.float64] = self.run.measure(plan).responses * tokens
        return measured

    def item_sets(self, places: ItemPlaces, task: str) -> list[Columns]:
        """Returns the neurons that stand out on each of some items of a task."""
        self.stages.enter(f"scoring neurons on {task}")
        scores = self.item_scores(places).scores
        return [item_set(item, self.neurons.layers, self.rule) for item in scores]

    def changed(self, delta: WeightDelta) -> NeuronRun:
        """Returns the run on the model with changed weights."""
        return replace(self, run=self.run.changed(delta))

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
        aggregate = self.run.tasks.trial().aggregation(name, before)
        seed = [self.seed, _INTERVALS]
        return bootstrap_interval(before, after, seed=seed, aggregate=aggregate)

    def score(self, name: str, values: Values) -> Interval:
        """Returns a task's score from responses to its `report` items, as its metric counts."""
        sign = 1.0 if self.benchmark(name).higher_is_better else -1.0
        aggregate = self.run.tasks.trial().aggregation(name, values)
        if aggregate is None:
            return self.mean(sign * values)
        rng = np.random.default_rng([self.seed, _INTERVALS])
        draws = [rng.integers(len(values), size=len(values)) for _ in range(2000)]
        scores = np.array([sign * aggregate(values[drawn], drawn) for drawn in draws])
        return interval_of(self.run.tasks.trial().score(name, values), scores)


def neuron_set(run: NeuronRun, task: str, choice: Any) -> NeuronSet:
    """Makes the result of the neurons that were selected on a task, and ends the run."""
    neurons, items, columns = run.neurons, choice.items, choice.columns
    standard = standardized(choice.scores, neurons.layers, run.rule.scope)
    order = sorted(columns.tolist(), key=lambda column: (-choice.scores[column], column))
    notes = left_out(run.run.tasks)
    if not len(columns):
        notes = (*notes, "no neuron stands out: lower `sigma` or give `count`")
    return NeuronSet(
        model=_model_info(neurons),
        task=task,
        capability=run.benchmark(task).capability,
        method=choice.method,
        settings=_ended(run)[1],
        items=len(run.places(task)),
        probability=None if items is None else float(items.probability.mean()),
        residual=None if items is None else float(items.residual.mean()),
        selected=tuple(
            LocatedNeuron(
                name=neurons.name(column),
                layer=int(neurons.layers[column]),
                index=neurons.index(column),
                score=float(choice.scores[column]),
                sigmas=float(standard[column]),
            )
            for column in order
        ),
        by_layer={
            str(block.layer): int((neurons.layers[columns] == block.layer).sum())
            for block in neurons.blocks
        },
        share_of_neurons=len(columns) / len(neurons),
        share_of_parameters=int(neurons.parameter_counts()[columns].sum()) / neurons.parameters,
        notes=notes,
    )


def experiment(
    run: NeuronRun, result: Shape, *, notes: Sequence[str] = (), **settings: Any
) -> NeuronExperiment[Shape]:
    """Makes the result of an experiment with its settings, and ends the run."""
    verb, run_settings = _ended(run)
    return NeuronExperiment(
        command=f"broca {verb}",
        model=_model_info(run.neurons),
        settings={**run_settings, **settings},
        result=result,
        notes=(*left_out(run.run.tasks), *notes),
    )


def _model_info(neurons: NeuronModel) -> ModelInfo:
    return replace(model_info(neurons.model), neurons=len(neurons), parameters=neurons.parameters)


def _ended(run: NeuronRun) -> tuple[str, dict[str, Any]]:
    """Ends a run, and returns its verb and its settings."""
    run.run.finish()
    settings = dict(run.run.settings)
    return settings.pop("verb"), settings


def _scale(factor: float) -> float:
    if not np.isfinite(factor) or factor == 1:
        raise BadInput(f"the factor of neurons must be a number other than 1, not {factor:g}")
    return factor
