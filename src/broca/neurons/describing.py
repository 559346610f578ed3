"""Makes the results of the neuron verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from broca.neurons.items import left_out
from broca.neurons.methods import Choice
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.selection import standardized
from broca.results.base import ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronExperiment, NeuronSet, Shape
from broca.runs.provenance import model_info


def model_facts(neurons: NeuronModel) -> ModelInfo:
    """Returns the description of a model with neurons in results."""
    return replace(model_info(neurons.model), neurons=len(neurons), parameters=neurons.parameters)


def neuron_set(run: NeuronRun, task: str, choice: Choice) -> NeuronSet:
    """Makes the result of the neurons that were selected on a task, and ends the run."""
    neurons, items, columns = run.neurons, choice.items, choice.columns
    standard = standardized(choice.scores, neurons.layers, run.rule.scope)
    order = sorted(columns.tolist(), key=lambda column: (-choice.scores[column], column))
    notes = left_out(run.run.tasks)
    if not len(columns):
        notes = (*notes, "no neuron stands out: lower `sigma` or give `count`")
    return NeuronSet(
        model=model_facts(neurons),
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
        model=model_facts(run.neurons),
        settings={**run_settings, **settings},
        result=result,
        notes=(*left_out(run.run.tasks), *notes),
    )


def _ended(run: NeuronRun) -> tuple[str, dict[str, Any]]:
    """Ends a run, and returns its verb and its settings."""
    run.run.finish()
    settings = dict(run.run.settings)
    return settings.pop("verb"), settings
