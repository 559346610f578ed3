"""Puts what the neuron verbs found into the shapes that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from broca.neurons.items import left_out
from broca.neurons.methods import Choice
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.selection import standardized
from broca.results.base import ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronExperiment, NeuronSet
from broca.runs.provenance import model_info


def model_facts(neurons: NeuronModel) -> ModelInfo:
    """What results say of a model with neurons."""
    return replace(model_info(neurons.model), neurons=len(neurons), parameters=neurons.parameters)


def neuron_set(
    run: NeuronRun, task: str, choice: Choice, *, scope: str, settings: Mapping[str, Any]
) -> NeuronSet:
    """The neurons that were chosen on a task; the run ends with it."""
    neurons, items, columns = run.neurons, choice.items, choice.columns
    standard = standardized(choice.scores, neurons.layers, scope)
    order = sorted(columns.tolist(), key=lambda column: (-choice.scores[column], column))
    notes = left_out(run.run.tasks)
    if not len(columns):
        notes = (*notes, "no neuron stands out: lower `sigma` or give `count`")
    run.run.finish()
    return NeuronSet(
        model=model_facts(neurons),
        task=task,
        capability=run.benchmark(task).capability,
        method=choice.method,
        settings=dict(settings),
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
    run: NeuronRun,
    verb: str,
    result: Any,
    *,
    settings: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> NeuronExperiment:
    """What an experiment found; the run ends with it."""
    run.run.finish()
    return NeuronExperiment(
        command=f"broca neurons {verb}",
        model=model_facts(run.neurons),
        settings=dict(settings),
        result=result,
        notes=(*left_out(run.run.tasks), *notes),
    )
