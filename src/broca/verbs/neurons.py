"""The verbs of `broca.neurons`: which feed-forward neurons carry what a data set has in common."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.methods import EMPTY, Columns, choose_neurons, random_sets, require_neuron_method
from broca.neurons.neuron_run import NeuronRun, open_neurons
from broca.options import DrawOptions, EraseOptions, LocateOptions, verb
from broca.results.neurons import Erased, Erasure, NeuronSet
from broca.runs.task_sets import Part
from broca.tasks import listed


@verb(LocateOptions)
def locate(options: LocateOptions) -> NeuronSet:
    """Locates the neurons that a data set has in common.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    method = options.method
    compares = require_neuron_method(method).compares
    if options.others != "auto" and listed(options.others) and not compares:
        raise BadInput(f"`others`: method '{method}' compares with no other task: leave it out")
    others = options.others if compares else ()
    with open_neurons("locate", options, others, {"locate": True}) as run:
        choice = choose_neurons(run, run.names[0], method)
        return run.selection(run.names[0], method, choice)


@verb(EraseOptions)
def erase(options: EraseOptions) -> Erasure:
    """Erases located neurons and as many random ones, on held-out items of the task and of others.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    methods = listed(options.methods)
    compares = [require_neuron_method(name).compares for name in methods or [""]]
    parts: dict[Part, bool] = {"locate": any(compares), "report": True}
    with open_neurons("erase", options, options.others, parts, methods=methods) as run:
        name, sets, equal = run.names[0], {}, run
        for method in methods:
            choice = choose_neurons(equal, name, method, required=method == methods[0])
            if equal is run:
                equal = replace(run, rule=replace(run.rule, count=len(choice.columns)))
            sets[method] = choice.columns
        lines = _erased(run, sets, options.draw_options, options.factor)
        neurons = {method: run.neurons.names(columns) for method, columns in sets.items()}
        model, settings = run.neurons.info(), {**run.ended(), "neurons": neurons}
        return Erasure(model=model, settings=settings, result=lines, notes=run.notes())


def _erased(
    run: NeuronRun, sets: dict[str, Columns], chance: DrawOptions, factor: float
) -> tuple[Erased, ...]:
    """Erases every set, and its random sets, on the `report` items of every task of the run."""
    arms = [
        arm
        for columns in sets.values()
        for arm in (columns, *random_sets(columns, run.neurons.layers, chance, seed=run.seed))
    ]
    lines = []
    for name in run.names:
        run.run.stages.enter(f"erasing on {name}")
        places = run.places(name, "report")
        intact, after = run.scaled(places, [EMPTY]), run.scaled(places, arms, factor)
        before, likelihood = intact.scores[0], intact.log_probability[0]
        for number, (method, columns) in enumerate(sets.items()):
            first = number * (chance.draws + 1)
            located, *random = after.scores[first : first + 1 + chance.draws]
            mean: NDArray[np.float64] = np.mean(random, axis=0)
            lines.append(
                Erased(
                    method=method, questions=name, neurons=len(columns),
                    before=run.score(name, before), after=run.score(name, located),
                    drop=run.lost(name, before, located),
                    random_drop=run.lost(name, before, mean),
                    random_drops=tuple(run.lost(name, before, draw).value for draw in random),
                    excess=run.lost(name, mean, located),
                    log_probability_drop=run.difference(likelihood, after.log_probability[first]),
                )
            )  # fmt: skip
    return tuple(lines)
