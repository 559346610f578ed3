"""The results of the neuron verbs: `neurons.json`, and a file for every experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results import codec
from broca.results.base import ModelInfo, Result, listed


@dataclass(frozen=True)
class LocatedNeuron:
    """A selected neuron.

    Attributes:
        name: Name, such as `L3N40`.
        layer: Decoder layer, from 0.
        index: Number within the layer.
        score: Score by which it was selected.
        sigmas: The score in standard deviations above the mean of its scope.
    """

    name: str
    layer: int
    index: int
    score: float
    sigmas: float


@dataclass(frozen=True, kw_only=True, repr=False)
class NeuronSet(Result, file="neurons.json", page="neurons.html", verb="broca neurons locate"):
    """The neurons that a data set has in common.

    Attributes:
        model: The model.
        task: The data set.
        capability: The capability that the data set measures.
        method: Method by which neurons were selected.
        settings: Settings of the method.
        items: Number of items that were scored.
        probability: Mean p(gold token) of these items; None if the method scores no items.
        residual: Mean completeness error of the integrated gradients; None if the method scores no
            items.
        selected: The neurons, highest score first.
        by_layer: Number of selected neurons in every layer.
        share_of_neurons: Share of the model's neurons that are selected.
        share_of_parameters: Share of the model's parameters that belong to selected neurons.
        notes: Notes for the reader.
    """

    kind: Literal["neuron set"] = "neuron set"
    model: ModelInfo
    task: str
    capability: str
    method: str
    settings: dict[str, Any]
    items: int
    probability: float | None
    residual: float | None
    selected: tuple[LocatedNeuron, ...]
    by_layer: dict[str, int]
    share_of_neurons: float
    share_of_parameters: float
    notes: tuple[str, ...] = ()

    def summary(self) -> tuple[str, ...]:
        """Returns the number of selected neurons, the first of them, and the method."""
        names = listed(tuple(neuron.name for neuron in self.selected))
        return (
            f"{len(self.selected)} neurons of {self.task} in {self.model.name} "
            f"({self.share_of_neurons:.2%} of all): {names or 'none'}",
            f"{self.method}, {self.items} items",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each selected neuron."""
        return [
            {
                "component": neuron.name, "layer": neuron.layer, "index": neuron.index,
                "score": neuron.score, "sigmas": neuron.sigmas,
            }
            for neuron in self.selected
        ]  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class NeuronExperiment(Result, verb="broca neurons"):
    """The result of any other neuron command.

    Attributes:
        command: The command.
        model: The model.
        settings: Settings of the experiment.
        result: One data class or several; dictionaries and lists if it was read from a file.
        notes: Notes for the reader.
    """

    kind: Literal["neuron experiment"] = "neuron experiment"
    command: str
    model: ModelInfo
    settings: dict[str, Any]
    result: Any
    notes: tuple[str, ...] = ()

    def summary(self) -> tuple[str, ...]:
        """Returns the experiment and its model."""
        return (f"{self.command} of {self.model.name}: {len(self.records())} lines",)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each part of the result; the columns depend on the experiment."""
        result = codec.plain(self.result)
        lines = result if isinstance(result, list) else [result]
        return [line if isinstance(line, dict) else {"value": line} for line in lines]
