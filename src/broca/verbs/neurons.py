"""The verbs of `broca.neurons`: which feed-forward neurons carry what a data set has in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from broca.errors import BadInput
from broca.neurons.experiments import crossed, enhanced, erased, moved
from broca.neurons.items import (
    example_tasks,
    examples_by_wording,
    read_pairs,
    shipped_pairs,
    task_of,
)
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
from broca.runs.task_sets import listed

UNRELATED = 20
"""Number of items of each task of another capability, which should not change."""


@verb(LocateOptions)
def locate(options: LocateOptions) -> NeuronSet:
    """Locates the neurons that a data set has in common.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    method, by_method = options.method, options.method_options
    others = options.others if require_neuron_method(method).compares else ()
    with open_neurons(options, [options.task, others]) as opened:
        name, contrast = opened.names(options.task, others)
        run = opened.on("locate", {"locate": (name, *contrast)})
        choice = choose_neurons(run, name, method=method, options=by_method, contrast=contrast)
        return run.selection(name, method, choice)


@verb(EraseOptions)
def erase(options: EraseOptions) -> NeuronExperiment[tuple[Erased, ...]]:
    """Erases located neurons and as many random ones, on held-out items of the task and of others.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    compared, by_method = listed(options.methods), options.method_options
    records = [require_neuron_method(name) for name in compared or [str(options.methods)]]
    with open_neurons(options, [options.task, options.others], methods=compared) as opened:
        name, others = opened.names(options.task, options.others)
        contrast = others if any(record.compares for record in records) else ()
        run = opened.on("erase", {"locate": (name, *contrast), "report": (name, *others)})
        equal, sets, notes = run, {}, []
        for method in compared:
            first = method == compared[0]
            choice = choose_neurons(
                equal, name, method=method, options=by_method, contrast=contrast, required=first
            )
            if first:
                equal = replace(run, rule=replace(run.rule, count=len(choice.columns)))
            if len(choice.columns):
                sets[method] = choice.columns
            else:
                notes.append(f"{method} selected no neuron")
        result = erased(run, sets, (name, *others), options.draw_options, factor=options.factor)
        neurons = {method: run.neurons.names(columns) for method, columns in sets.items()}
        return run.experiment(result, notes=notes, neurons=neurons)


@verb(EnhanceOptions)
def enhance(options: EnhanceOptions) -> NeuronExperiment[tuple[Arm, ...]]:
    """Trains only the located neurons of a task, all others, or random ones, and measures them.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    compares = require_neuron_method(options.method).compares
    with open_neurons(options, [options.task, options.others]) as opened:
        name, others = opened.names(options.task, options.others)
        contrast = others if compares else ()
        run = opened.on(
            "enhance",
            {"locate": (name, *contrast), "confirm": (name,), "report": (name, *others)},
        )
        choice = choose_neurons(run, name, method=options.method, contrast=contrast, required=True)
        result = enhanced(
            run, choice.columns, name, (name, *others),
            options.draw_options, options=options.training_options, without=options.without,
        )  # fmt: skip
        return run.experiment(result)


@verb(CrossOptions)
def cross(options: CrossOptions) -> NeuronExperiment[tuple[Crossed, ...]]:
    """Locates on one task, erases or trains there, and measures on every task.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    method = options.method
    require_neuron_method(method)
    with open_neurons(options, [options.tasks]) as opened:
        _, names = opened.names("", options.tasks)
        if len(names) < 2:
            raise BadInput("there is nothing to cross: name two data sets or more in `tasks`")
        run = opened.on("cross", {"locate": names, "confirm": names, "report": names})
        sets = {}
        for name in names:
            contrast = [other for other in names if other != name]
            sets[name] = choose_neurons(run, name, method=method, contrast=contrast).columns
        result = crossed(
            run, sets, options.draw_options, action=options.action,
            options=options.training_options,
        )  # fmt: skip
        empty = [name for name, columns in sets.items() if not len(columns)]
        notes = [f"no neuron stands out on {name}: left out" for name in empty]
        return run.experiment(result, notes=notes)


@verb(OverlapOptions)
def overlap(options: OverlapOptions) -> NeuronExperiment[Overlaps]:
    """Compares the neurons of two halves of each data set, and of two data sets.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    with open_neurons(options, [options.tasks]) as opened:
        _, names = opened.names("", options.tasks)
        if not names:
            raise BadInput("there is no data set to compare: name some in `tasks`")
        run = opened.on("overlap", {"locate": names})
        return run.experiment(overlapped(run, names))


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
    named = [options.task, options.others]
    with open_neurons(options, named, factors=factors) as opened:
        name, others = opened.names(options.task, options.others)
        run = opened.on("reliability", {"locate": (name, *others)})
        unrelated = np.concatenate([EMPTY, *(run.places(other)[:UNRELATED] for other in others)])
        result = moved(run, name, options.draw_options, unrelated=unrelated, factors=factors)
        return run.experiment(result)


@verb(DecoupleOptions)
def decouple(options: DecoupleOptions) -> NeuronExperiment[tuple[Decoupled, ...]]:
    """Compares the neurons of pairs of items that share a capability, or a content.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    pairs = options.pairs
    chosen = read_pairs(pairs) if pairs else shipped_pairs(count=options.items, seed=options.seed)
    with open_neurons(options, pairs=str(pairs or "shipped")) as opened:
        run = opened.on("decouple", example_tasks(opened.run.model, task_of(chosen)))
        return run.experiment(decoupled(run, chosen))


@verb(FidelityOptions)
def fidelity(options: FidelityOptions) -> NeuronExperiment[Fidelity]:
    """Compares the neurons of an item in several wordings.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    data = options.data_options
    examples = examples_by_wording(
        options.task, contents=options.contents, wordings=options.wordings, seed=data.seed
    )
    with open_neurons(options, task=examples.name) as opened:
        tasks = example_tasks(opened.run.model, examples, answer_tokens=data.answer_tokens)
        run = opened.on("fidelity", tasks)
        return run.experiment(reworded(run, examples.name))
