"""The verbs of `broca.neurons`: which feed-forward neurons carry what a data set has in common."""

from dataclasses import replace

import numpy as np

from broca.errors import BadInput
from broca.neurons.experiments import crossed, enhanced, erased, moved
from broca.neurons.items import examples_by_wording, read_pairs, shipped_pairs, task_of
from broca.neurons.methods import EMPTY, choose_neurons, require_neuron_method
from broca.neurons.neuron_run import open_neurons
from broca.neurons.overlaps import decoupled, overlapped, reworded
from broca.options import (
    CrossOptions,
    DecoupleOptions,
    EnhanceOptions,
    EraseOptions,
    FidelityOptions,
    LocateOptions,
    OverlapOptions,
    ReliabilityOptions,
    verb,
)
from broca.results.neurons import (
    Arm,
    Crossed,
    Decoupled,
    Erased,
    Fidelity,
    NeuronExperiment,
    NeuronSet,
    Overlaps,
    Reliability,
)
from broca.runs.task_sets import Part, listed

UNRELATED = 20
"""Number of items of each task of another capability, which should not change."""


@verb(LocateOptions)
def locate(options: LocateOptions) -> NeuronSet:
    """Locates the neurons that a data set has in common.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    method = options.method
    others = options.others if require_neuron_method(method).compares else ()
    with open_neurons("locate", options, options.task, others, {"locate": True}) as run:
        choice = choose_neurons(run, run.names[0], method)
        return run.selection(run.names[0], method, choice)


@verb(EraseOptions)
def erase(options: EraseOptions) -> NeuronExperiment[tuple[Erased, ...]]:
    """Erases located neurons and as many random ones, on held-out items of the task and of others.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    methods = listed(options.methods)
    compares = [require_neuron_method(name).compares for name in methods or [""]]
    parts: dict[Part, bool] = {"locate": any(compares), "report": True}
    with open_neurons(
        "erase", options, options.task, options.others, parts, methods=methods
    ) as run:
        name, sets, equal = run.names[0], {}, run
        for method in methods:
            choice = choose_neurons(equal, name, method, required=method == methods[0])
            if equal is run:
                equal = replace(run, rule=replace(run.rule, count=len(choice.columns)))
            sets[method] = choice.columns
        notes = [f"{method} selected no neuron" for method in sets if not len(sets[method])]
        sets = {method: columns for method, columns in sets.items() if len(columns)}
        result = erased(run, sets, options.draw_options, factor=options.factor)
        neurons = {method: run.neurons.names(columns) for method, columns in sets.items()}
        return run.experiment(result, notes=notes, neurons=neurons)


@verb(EnhanceOptions)
def enhance(options: EnhanceOptions) -> NeuronExperiment[tuple[Arm, ...]]:
    """Trains only the located neurons of a task, all others, or random ones, and measures them.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    compares = require_neuron_method(options.method).compares
    parts: dict[Part, bool] = {"locate": compares, "confirm": False, "report": True}
    with open_neurons("enhance", options, options.task, options.others, parts) as run:
        name = run.names[0]
        located = choose_neurons(run, name, options.method, required=True).columns
        result = enhanced(
            run, located, name, options.draw_options, options.training_options,
            without=options.without,
        )  # fmt: skip
        return run.experiment(result)


@verb(CrossOptions)
def cross(options: CrossOptions) -> NeuronExperiment[tuple[Crossed, ...]]:
    """Locates on one task, erases or trains there, and measures on every task.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    require_neuron_method(options.method)
    parts: dict[Part, bool] = {"locate": True, "confirm": True, "report": True}
    with open_neurons("cross", options, "", options.tasks, parts) as run:
        if len(run.names) < 2:
            raise BadInput("there is nothing to cross: name two data sets or more in `tasks`")
        sets = {name: choose_neurons(run, name, options.method).columns for name in run.names}
        training = options.training_options if options.action == "tune" else None
        result = crossed(run, sets, options.draw_options, training)
        empty = [name for name, columns in sets.items() if not len(columns)]
        notes = [f"no neuron stands out on {name}: left out" for name in empty]
        return run.experiment(result, notes=notes)


@verb(OverlapOptions)
def overlap(options: OverlapOptions) -> NeuronExperiment[Overlaps]:
    """Compares the neurons of two halves of each data set, and of two data sets.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    with open_neurons("overlap", options, "", options.tasks, {"locate": True}) as run:
        return run.experiment(overlapped(run))


@verb(ReliabilityOptions)
def reliability(options: ReliabilityOptions) -> NeuronExperiment[Reliability]:
    """Scales the neurons of every item and measures how p(answer) changes.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    given = options.factors
    try:
        factors = [float(part) for part in (given.split(",") if isinstance(given, str) else given)]
    except ValueError:
        raise BadInput(f"`factors` '{given}' are not numbers joined by commas") from None
    with open_neurons(
        "reliability", options, options.task, options.others, {"locate": True}, factors=factors
    ) as run:
        name, *others = run.names
        unrelated = np.concatenate([EMPTY, *(run.places(other)[:UNRELATED] for other in others)])
        result = moved(run, name, options.draw_options, unrelated=unrelated, factors=factors)
        return run.experiment(result)


@verb(DecoupleOptions)
def decouple(options: DecoupleOptions) -> NeuronExperiment[tuple[Decoupled, ...]]:
    """Compares the neurons of pairs of items that share a capability, or a content.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    given = options.pairs
    pairs = read_pairs(given) if given else shipped_pairs(count=options.items, seed=options.seed)
    with open_neurons(
        "decouple", options, examples=task_of(pairs), pairs=given or "shipped"
    ) as run:
        return run.experiment(decoupled(run, pairs))


@verb(FidelityOptions)
def fidelity(options: FidelityOptions) -> NeuronExperiment[Fidelity]:
    """Compares the neurons of an item in several wordings.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    examples = examples_by_wording(
        options.task, contents=options.contents, wordings=options.wordings,
        seed=options.data_options.seed,
    )  # fmt: skip
    with open_neurons("fidelity", options, examples=examples) as run:
        return run.experiment(reworded(run, examples.name))
