"""`neurons cross`: locates on one data set, erases or trains there, and measures on every other."""

from __future__ import annotations

from collections.abc import Sequence

from broca.errors import BadInput
from broca.models import GatedModel
from broca.neurons.crossing import ACTIONS, crossed, crossed_steps
from broca.neurons.describing import experiment
from broca.neurons.methods import choice_steps, choose_neurons, require_neuron_method
from broca.neurons.opening import opened
from broca.neurons.sets import RandomSets, require_one_of
from broca.options import NeuronRunOptions, TuningOptions, takes_options
from broca.results.neurons import Crossed, NeuronExperiment
from broca.tasks import Task


@takes_options
def cross(
    model: str | GatedModel,
    tasks: str | Sequence[str | Task] = "auto",
    *,
    action: str = "erase",
    method: str = "cnl",
    draws: int = 3,
    matching: str = "size",
    report_items: int = 100,
    neuron_options: TuningOptions,
    run_options: NeuronRunOptions,
) -> NeuronExperiment[tuple[Crossed, ...]]:
    """Locates on one task, erases or trains there, and measures on every task.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        tasks: The tasks, as a list or joined by commas; `auto`: all shipped ones.
        action: What to do with the located neurons: `erase` or `tune`.
        method: `cnl` (commonality neurons), or another of `broca.neurons.methods.NEURON_METHODS`.
        draws: Number of random sets to compare with each located set.
        matching: Random sets match the `size`, or the number in every `layer`.
        report_items: Maximum number of items of each task to measure on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    require_neuron_method(method)
    require_one_of("action", action, ACTIONS)
    chance, options = RandomSets(draws, matching), neuron_options.training_options
    with opened(
        model, run_options, neuron_options,
        action=action, method=method, draws=draws, matching=matching, report_items=report_items,
        named=[tasks],
    ) as session:  # fmt: skip
        _, names = session.names("", tasks)
        if len(names) < 2:
            raise BadInput("there is nothing to cross: name two data sets or more in `tasks`")
        run = session.run("cross", {"locate": names, "confirm": names, "report": names})
        contrasts = {name: [other for other in names if other != name] for name in names}
        run.stages.expect(
            [
                *(
                    step
                    for name, contrast in contrasts.items()
                    for step in choice_steps(run, name, method=method, contrast=contrast)
                ),
                *crossed_steps(run, names, chance, action=action, options=options),
            ]
        )
        sets = {
            name: choose_neurons(run, name, method=method, contrast=contrast).columns
            for name, contrast in contrasts.items()
        }
        result = crossed(run, sets, chance, action=action, options=options, folder=session.deltas)
        notes = [
            f"no neuron stands out on {name}: left out"
            for name, columns in sets.items()
            if not len(columns)
        ]
        return experiment(run, result, notes=notes)
