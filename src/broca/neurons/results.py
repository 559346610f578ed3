"""What the neuron commands write: `neurons.json` and one file for every experiment, schema 1."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.neurons.locating import NeuronModel
from broca.neurons.methods import Choice
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import standardized

SCHEMA = 1


@dataclass(frozen=True)
class ModelFacts:
    """The model that was examined.

    Attributes:
        name: What the user called it.
        fingerprint: Digest of its weights.
        architecture: Its class in transformers.
        dtype: Number format of the weights.
        layers: Decoder layers with a feed-forward block.
        neurons: Feed-forward neurons.
        parameters: All parameters.
    """

    name: str
    fingerprint: str
    architecture: str
    dtype: str
    layers: int
    neurons: int
    parameters: int

    @classmethod
    def of(cls, neurons: NeuronModel) -> ModelFacts:
        """The facts of a model."""
        model = neurons.model
        return cls(
            name=model.name,
            fingerprint=model.fingerprint,
            architecture=model.architecture,
            dtype=model.dtype,
            layers=len(neurons.blocks),
            neurons=len(neurons),
            parameters=sum(one.numel() for one in model.model.parameters()),
        )


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


@dataclass(frozen=True)
class NeuronSet:
    """The neurons that a data set has in common: `neurons.json`.

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
        broca: Version of broca.
        schema: Version of this layout.
    """

    model: ModelFacts
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
    broca: str = field(default_factory=lambda: version("broca"))
    schema: int = SCHEMA


@dataclass(frozen=True)
class Experiment:
    """What any other neuron command found.

    Attributes:
        command: The command.
        model: The model.
        settings: Every setting.
        result: What it found, as dataclasses.
        notes: What the reader should know.
        broca: Version of broca.
        schema: Version of this layout.
    """

    command: str
    model: ModelFacts
    settings: dict[str, Any]
    result: Any
    notes: tuple[str, ...] = ()
    broca: str = field(default_factory=lambda: version("broca"))
    schema: int = SCHEMA


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
    total = sum(one.numel() for one in neurons.model.model.parameters())
    own = int(neurons.parameter_counts()[choice.columns].sum())
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
        model=ModelFacts.of(neurons),
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
        share_of_parameters=own / total,
        notes=notes,
    )


def to_json(result: NeuronSet | Experiment) -> str:
    """Indented JSON, keys in a fixed order; what is not known (NaN) is null."""
    return json.dumps(_plain(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write(text: str, path: Path) -> Path:
    """Writes a file beside its place and then renames it."""
    beside = path.with_suffix(path.suffix + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
    return path


def read_located(path: str | Path) -> NeuronSet:
    """Reads a `neurons.json`, or the one in a folder.

    Raises:
        BadInput: It does not exist or is no such file.
    """
    path = Path(path)
    file = path / "neurons.json" if path.is_dir() else path
    if not file.is_file():
        raise BadInput(f"'{file}' does not exist: give the out folder of `broca neurons locate`")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise BadInput(
                f"'{file}' has schema {data['schema']}, this broca reads schema {SCHEMA}: use the "
                "version of broca that wrote it"
            )
        return NeuronSet(
            **{
                **data,
                "model": ModelFacts(**data["model"]),
                "selected": tuple(LocatedNeuron(**one) for one in data["selected"]),
                "notes": tuple(data["notes"]),
            }
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"'{file}' is no result of `broca neurons locate` ({type(error).__name__}: {error})"
        ) from error
