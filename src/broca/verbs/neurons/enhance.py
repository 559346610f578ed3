"""`neurons enhance`: does training only the located neurons help more than training others?"""

from __future__ import annotations

from collections.abc import Sequence

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.enhancing import ARMS, WITHOUT, enhanced
from broca.neurons.methods import (
    choice_steps,
    choose_neurons,
    require_neuron_method,
    require_some,
)
from broca.neurons.opening import opened
from broca.neurons.sets import RandomSets, require_one_of
from broca.neurons.verb_steps import arm_names, training_steps
from broca.options import NeuronRunOptions, TuningOptions, takes_options
from broca.results.neurons import Arm, NeuronExperiment
from broca.tasks import Task


@takes_options
def enhance(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "",
    method: str = "cnl",
    without: str = "zeroed",
    draws: int = 3,
    matching: str = "size",
    report_items: int = 300,
    neuron_options: TuningOptions,
    run_options: NeuronRunOptions,
) -> NeuronExperiment[tuple[Arm, ...]]:
    """Trains only the located neurons, only the others, or random ones; measures on held-out items.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task to train on, as `broca.neurons.locate` takes it.
        others: Other tasks to measure on; `auto` as in `broca.localize`.
        method: `cnl` (commonality neurons), or another of `broca.neurons.methods.NEURON_METHODS`.
        without: State of the located neurons while all others are trained: `zeroed` or `frozen`.
        draws: Number of random sets to compare with each located set.
        matching: Random sets match the `size`, or the number in every `layer`.
        report_items: Maximum number of items of each task to measure on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    compares = require_neuron_method(method).compares
    require_one_of("without", without, WITHOUT)
    chance, options = RandomSets(draws, matching), neuron_options.training_options
    with opened(
        model, run_options, neuron_options,
        method=method, without=without, draws=draws, matching=matching, report_items=report_items,
        named=[task, others],
    ) as session:  # fmt: skip
        name, others = session.names(task, others)
        contrast = others if compares else ()
        run = session.run(
            "enhance",
            {"locate": (name, *contrast), "confirm": (name,), "report": (name, *others)},
        )
        measured = (name, *others)
        run.stages.expect(
            [
                *choice_steps(run, name, method=method, contrast=contrast),
                *training_steps(run, name, measured, arm_names(ARMS, chance), options=options),
            ]
        )
        choice = choose_neurons(run, name, method=method, contrast=contrast)
        result = enhanced(
            run, require_some(choice, name).columns, name, measured, chance,
            options=options, without=without, folder=session.deltas,
        )  # fmt: skip
        return experiment(run, result)
