"""Describes a choice of neurons as a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from broca.neurons.locating import NeuronModel
from broca.neurons.methods import Choice
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import standardized
from broca.results.base import ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronSet
from broca.runs.provenance import model_info


def neuron_model_info(neurons: NeuronModel) -> ModelInfo:
    """What results of neurons say of a model."""
    return replace(
        model_info(neurons.model),
        layers=len(neurons.blocks),
        neurons=len(neurons),
        parameters=sum(weights.numel() for weights in neurons.model.model.parameters()),
    )


def located(
    neurons: NeuronModel,
    questions: QuestionSet,
    choice: Choice,
    *,
    settings: dict[str, Any],
    notes: tuple[str, ...] = (),
) -> NeuronSet:
    """Describes a choice of neurons."""
    standard = standardized(choice.scores, neurons.layers, settings.get("scope", "global"))
    order = sorted(choice.columns.tolist(), key=lambda column: (-choice.scores[column], column))
    info = neuron_model_info(neurons)
    chosen_parameters = int(neurons.parameter_counts()[choice.columns].sum())
    selected = tuple(
        LocatedNeuron(
            name=neurons.name(column),
            layer=int(neurons.layers[column]),
            index=column - neurons.first_column[int(neurons.layers[column])],
            score=float(choice.scores[column]),
            sigmas=float(standard[column]),
        )
        for column in order
    )
    items = choice.items
    return NeuronSet(
        model=info,
        task=questions.name,
        capability=questions.capability,
        method=choice.method,
        settings=settings,
        items=len(questions),
        probability=None if items is None else float(items.probability.mean()),
        residual=None if items is None else float(items.residual.mean()),
        selected=selected,
        by_layer={
            str(block.layer): int((neurons.layers[choice.columns] == block.layer).sum())
            for block in neurons.blocks
        },
        share_of_neurons=len(choice.columns) / len(neurons),
        share_of_parameters=chosen_parameters / (info.parameters or 1),
        notes=notes,
    )
