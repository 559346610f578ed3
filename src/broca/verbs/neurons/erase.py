"""`neurons erase`: how much is lost without the located neurons, and without random ones?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.erasing import erased
from broca.neurons.methods import (
    choice_steps,
    choose_neurons,
    require_neuron_method,
    require_some,
)
from broca.neurons.opening import opened
from broca.neurons.sets import RandomSets
from broca.neurons.verb_steps import erasing_steps
from broca.options import LocatingOptions, NeuronRunOptions, takes_options
from broca.results.neurons import Erased, NeuronExperiment
from broca.runs.task_sets import listed
from broca.tasks import Task


@takes_options
def erase(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    methods: str | Sequence[str] = "cnl",
    factor: float = 0.0,
    draws: int = 5,
    matching: str = "size",
    report_items: int = 100,
    neuron_options: LocatingOptions,
    run_options: NeuronRunOptions,
) -> NeuronExperiment[tuple[Erased, ...]]:
    """Erases located neurons and as many random ones, on held-out items of the task and of others.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task that neurons are located on, as `broca.neurons.locate` takes it.
        others: Other tasks to measure on; `auto` as in `broca.localize`.
        methods: Methods to compare, as a list or joined by commas, with sets of the first method's
            size.
        factor: Factor of the neurons' activations; 0 erases.
        draws: Number of random sets to compare with each located set.
        matching: Random sets match the `size`, or the number in every `layer`.
        report_items: Maximum number of items of each task to measure on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    compared, chance = listed(methods), RandomSets(draws, matching)
    options = neuron_options.method_options
    records = [require_neuron_method(name, options) for name in compared or [str(methods)]]
    with opened(
        model, run_options, neuron_options,
        methods=compared, factor=factor, draws=draws, matching=matching, report_items=report_items,
        named=[task, others],
    ) as session:  # fmt: skip
        name, others = session.names(task, others)
        contrast = others if any(record.compares for record in records) else ()
        run = session.run("erase", {"locate": (name, *contrast), "report": (name, *others)})
        run.stages.expect(
            [
                *(
                    step
                    for method in compared
                    for step in choice_steps(
                        run, name, method=method, options=options, contrast=contrast
                    )
                ),
                *erasing_steps(run, (name, *others), sets=len(compared), chance=chance),
            ]
        )
        first, equal, sets, notes = compared[0], run, {}, []
        for method in compared:
            choice = choose_neurons(equal, name, method=method, options=options, contrast=contrast)
            if method == first:
                size = len(require_some(choice, name).columns)
                equal = replace(run, rule=replace(neuron_options.rule_options, count=size))
            if len(choice.columns):
                sets[method] = choice.columns
            else:
                notes.append(f"{method} selected no neuron")
        result = erased(run, sets, (name, *others), chance, factor=factor)
        neurons = {method: [*run.neurons.names(columns)] for method, columns in sets.items()}
        return experiment(run, result, notes=notes, neurons=neurons)
