"""Measures neurons in a run: their scores on items, and the effect of scaling them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Bools, Ints, Plan
from broca.models import GatedModel, NeuronBlock, neuron_blocks, parameters_of_neuron
from broca.neurons.gradients import IntegratedGradients, ItemScores, steps_of
from broca.neurons.items import neuron_tasks
from broca.neurons.methods import Choice, Columns, standardized
from broca.options import EraseOptions, LocateOptions, RuleOptions, flat
from broca.results.base import Interval, ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronSet
from broca.runs.run import Run, model_info
from broca.runs.session import open_run
from broca.runs.task_sets import Part, other_tasks
from broca.tasks import Benchmark, Request, Tasks
from broca.verification.statistics import Values, bootstrap_interval, paired_drop

_INTERVALS = 11
"""Distinguishes the random numbers of intervals from others of the same seed."""


class NeuronModel:
    """A model with its feed-forward neurons in order: neuron i is column i everywhere.

    Args:
        model: The model, with `neurons` among its components.

    Raises:
        UnsupportedModel: The model routes tokens to experts, or has no feed-forward blocks.
        BadInput: The model was loaded without gates on neurons.
    """

    def __init__(self, model: GatedModel) -> None:
        self.model = model
        self.blocks: tuple[NeuronBlock, ...] = neuron_blocks(model.structure)
        self.layers: NDArray[np.intp] = np.repeat(
            [block.layer for block in self.blocks], [block.width for block in self.blocks]
        )
        """Layer of every neuron, `(neurons,)`."""
        self.indices = np.concatenate([np.arange(block.width) for block in self.blocks])
        """Number of every neuron within its layer, `(neurons,)`."""
        kinds = np.array([component.kind for component in model.components])
        self.gates: NDArray[np.intp] = np.flatnonzero(kinds == "neuron")
        """Column of every neuron among the model's components, `(neurons,)`."""
        if len(self.gates) != len(self):
            raise BadInput(
                "the model's neurons have no gates: load it with `components` 'neurons' or "
                "'heads+neurons'"
            )

    def __len__(self) -> int:
        return len(self.layers)

    def masks(self, sets: Sequence[Columns]) -> Bools:
        """Returns masks that ablate sets of neurons, `(sets, components)`."""
        return designs.of_sets([self.gates[one] for one in sets], len(self.model.components))

    def names(self, columns: Columns) -> list[str]:
        """Returns the names of some neurons, such as `L3N40`."""
        return [self.model.components[gate].name for gate in self.gates[columns].tolist()]

    @cached_property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return sum(parameter.numel() for parameter in self.model.model.parameters())

    def parameters_of(self, columns: Columns) -> int:
        """Returns the number of parameters of some neurons."""
        with self.model.in_use():
            each = {
                block.layer: parameters_of_neuron(self.model.model, block) for block in self.blocks
            }
        return sum(each[layer] for layer in self.layers[columns].tolist())

    def info(self) -> ModelInfo:
        """Returns the description of the model for results."""
        return replace(model_info(self.model), neurons=len(self), parameters=self.parameters)


@contextmanager
def open_neurons(
    verb: str,
    options: LocateOptions | EraseOptions,
    others: Tasks,
    parts: Mapping[Part, bool],
    **settings: Any,
) -> Iterator[NeuronRun]:
    """Opens a model whose components are its neurons, on the items of a verb.

    Args:
        verb: Name of the verb.
        options: Its options.
        others: The other tasks.
        parts: The parts of the items, and whether each has items of the other tasks too.
        settings: Settings of the run in place of the options of the same name.

    Raises:
        BrocaError: A task cannot be used, the model cannot be loaded, or it has no neurons that can
            be ablated.
    """
    loading = replace(options.run_options.model_options, components="neurons")
    run_options = replace(options.run_options, model_options=loading)
    objects = ("model", "task", "others", "run_options")
    settings = {"verb": f"neurons {verb}", **flat(options.decisive(without=objects)), **settings}
    with open_run(options.model, run_options, others=[options.task, others]) as opened:
        neurons = NeuronModel(opened.model)
        name = opened.catalog.name_of(options.task)
        names = other_tasks(name, others, opened.model, opened.catalog)
        settings["task_options"] = run_options.task_options.to_dict()
        settings |= {"task": name, "others": list(names)}
        opened.stages.enter("building the tasks")
        needed = {part: (name, *names) if every else (name,) for part, every in parts.items()}
        report_items = settings.get("report_items", 0)
        tasks = neuron_tasks(opened, needed, options.data_options, report_items=report_items)
        run = opened.on(tasks, settings=settings)
        yield NeuronRun(run, neurons, options.rule_options, settings["seed"])


@dataclass(frozen=True)
class Responses:
    """The responses to some items with neurons scaled.

    Attributes:
        scores: Scores in the tasks' own metrics, higher is better, `(sets, items)`.
        log_probability: Log-probability of the whole gold answer, in nats, `(sets, items)`.
    """

    scores: Values
    log_probability: Values


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
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, the verb's own first."""
        return tuple(self.run.tasks.benchmarks)

    def places(self, name: str, part: Part = "locate") -> Ints:
        """Returns the positions of a task's items of a part."""
        return self.run.tasks.places[part][name]

    def benchmark(self, name: str) -> Benchmark:
        """Returns a task of the run."""
        return self.run.tasks.benchmarks[name]

    def golds(self, places: Ints) -> list[Request]:
        """Returns the gold answers of some items, under teacher forcing."""
        bank = (self.run.bank[place] for place in places.tolist())
        margins = (benchmark.margin(item) for benchmark, item in bank)
        return [margin.requests[0] for margin in margins if margin is not None]

    def item_scores(self, places: Ints, *, integrated: bool = True) -> ItemScores:
        """Scores every neuron for every item.

        Args:
            places: The items.
            integrated: Whether to integrate gradients over the steps of the rule; otherwise the
                gradient is taken at the full activation (gradient x activation).
        """
        alphas = steps_of(self.rule.steps) if integrated else (1.0,)
        depth, blocks = self.neurons.model.structure.layers, self.neurons.blocks
        # a step runs through the layers from the block upward
        steps = 3 * len(alphas) * sum((depth - block.layer) / depth for block in blocks)
        observations = []
        for gold in self.golds(places):
            length = len(gold.context) + round(steps * len(gold.continuation))
            observations.append(IntegratedGradients(gold, alphas, length=length))
        return ItemScores.of(self.run.observe(observations))

    def scaled(self, places: Ints, sets: Sequence[Columns], factor: float = 0.0) -> Responses:
        """Measures all items under every set: the tasks' metrics and the gold answers' likelihood.

        Args:
            places: The items.
            sets: Neurons whose activations are multiplied, at every token.
            factor: Factor of the activations: 0 erases, 2 amplifies.
        """
        plan = replace(Plan.crossed(self.neurons.masks(sets), places), scale=factor)
        shape = (len(sets), len(places))
        tokens = np.array([len(gold.continuation) for gold in self.golds(places)])
        margins = self.run.measure(replace(plan, response="margin")).responses
        scores = self.run.measure(plan).responses
        return Responses(scores.reshape(shape), margins.reshape(shape) * tokens)

    def difference(self, first: Values, second: Values) -> Interval:
        """Returns the mean difference of paired values with its bootstrap interval."""
        return bootstrap_interval(first, second, seed=[self.seed, _INTERVALS])

    def lost(self, name: str, before: Values, after: Values) -> Interval:
        """Returns the loss of a task's score between responses to its `report` items."""
        own = self.run.tasks.trial().aggregation(name, before)
        return paired_drop(before, after, seed=[self.seed, _INTERVALS], aggregate=own)[0]

    def score(self, name: str, values: Values) -> Interval:
        """Returns a task's score from responses to its `report` items, as its metric counts."""
        sign = 1.0 if self.benchmark(name).higher_is_better else -1.0
        own = self.run.tasks.trial().aggregation(name, values)
        score = own and (lambda some, drawn: sign * own(sign * some, drawn))
        seed, none = [self.seed, _INTERVALS], np.zeros(len(values))
        found = bootstrap_interval(sign * values, none, seed=seed, aggregate=score)
        return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))

    def notes(self) -> tuple[str, ...]:
        """Returns notes on the tasks and their items."""
        tasks = self.run.tasks
        return (*(note for name in tasks.benchmarks for note in tasks.notes_of(name)), *tasks.notes)

    def selection(self, task: str, method: str, choice: Choice) -> NeuronSet:
        """Makes the result of the neurons that a method selected on a task, and ends the run."""
        neurons, items, columns = self.neurons, choice.items, choice.columns
        standard = standardized(choice.scores)
        best_first = columns[np.argsort(-choice.scores[columns], kind="stable")]
        facts = (
            values[best_first].tolist()
            for values in (neurons.layers, neurons.indices, choice.scores, standard)
        )
        error = None if items is None else float(items.residual.mean())
        nothing = () if len(columns) else ("no neuron stands out: lower `sigma` or give `count`",)
        layers = neurons.layers[columns]
        return NeuronSet(
            model=neurons.info(), task=task, capability=self.benchmark(task).capability,
            method=method, settings=self.ended(), items=len(self.places(task)),
            probability=None if items is None else float(items.probability.mean()),
            residual=None if error is None or np.isnan(error) else error,
            selected=tuple(map(LocatedNeuron, neurons.names(best_first), *facts)),
            by_layer={str(own.layer): int((layers == own.layer).sum()) for own in neurons.blocks},
            share_of_neurons=len(columns) / len(neurons),
            share_of_parameters=neurons.parameters_of(columns) / neurons.parameters,
            notes=(*self.notes(), *nothing),
        )  # fmt: skip

    def ended(self) -> dict[str, Any]:
        """Ends the run, and returns its settings."""
        self.run.finish()
        return {name: value for name, value in self.run.settings.items() if name != "verb"}
