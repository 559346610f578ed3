"""What the neuron verbs found: `neurons.json`, and a file for every experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results import codec
from broca.results.base import ModelInfo, Result, listed


@dataclass(frozen=True)
class LocatedNeuron:
    """One selected neuron.

    Attributes:
        name: Such as `L3N40`.
        layer: Decoder layer, from 0.
        index: Number within the layer.
        score: What it was chosen by.
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
        capability: What it measures.
        method: How neurons were chosen.
        settings: Every setting of the choice.
        items: Items that were scored.
        probability: p(gold token) on them, mean; None where the method scores no items.
        residual: Error of the integration steps against completeness, mean; None likewise.
        selected: The neurons, highest score first.
        by_layer: How many lie in every layer.
        share_of_neurons: Selected over all neurons.
        share_of_parameters: Their parameters over all parameters of the model.
        notes: What the reader should know.
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
        """How many neurons there are, which come first, and how they were found."""
        names = listed(tuple(neuron.name for neuron in self.selected))
        return (
            f"{len(self.selected)} neurons of {self.task} in {self.model.name} "
            f"({self.share_of_neurons:.2%} of all): {names or 'none'}",
            f"{self.method}, {self.items} items",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each selected neuron."""
        return [
            {
                "component": neuron.name, "layer": neuron.layer, "index": neuron.index,
                "score": neuron.score, "sigmas": neuron.sigmas,
            }
            for neuron in self.selected
        ]  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class NeuronExperiment(Result, verb="broca neurons"):
    """What any other neuron command found.

    Attributes:
        command: The command.
        model: The model.
        settings: Every setting.
        result: What it found: a data class or several; read from a file, dictionaries and lists.
        notes: What the reader should know.
    """

    kind: Literal["neuron experiment"] = "neuron experiment"
    command: str
    model: ModelInfo
    settings: dict[str, Any]
    result: Any
    notes: tuple[str, ...] = ()

    def summary(self) -> tuple[str, ...]:
        """Which experiment it is, of which model."""
        return (f"{self.command} of {self.model.name}: {len(self.records())} lines",)

    def records(self) -> list[dict[str, Any]]:
        """A line for each part of the result; the columns are those of the experiment."""
        found = codec.plain(self.result)
        lines = found if isinstance(found, list) else [found]
        return [line if isinstance(line, dict) else {"value": line} for line in lines]
