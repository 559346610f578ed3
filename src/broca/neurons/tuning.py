"""Trains only the parameters of selected neurons, as changes of weights.

The model is trained in this process and restored exactly. The changes are a `NeuronDelta`, under
which rows can be measured in any process.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from broca.errors import BadInput
from broca.models import GatedModel
from broca.models.caches import left_padded
from broca.neurons.methods import Columns
from broca.neurons.neuron_run import NeuronModel
from broca.options import TrainingOptions
from broca.results.files import check_out_folder
from broca.runs.progress import Stages
from broca.tasks import Request


@dataclass(frozen=True, eq=False)
class ChangedPart:
    """New values of a part of a parameter.

    Attributes:
        name: Dotted name of the parameter.
        dim: Dimension along which the part is selected.
        positions: Positions along this dimension, `(positions,)`.
        values: The values, in the parameter's number format.
    """

    name: str
    dim: int
    positions: Tensor
    values: Tensor

    def write(self, model: Any) -> None:
        """Writes the values into a transformers model."""
        parameter = model.get_parameter(self.name)
        with torch.no_grad():
            parameter.index_copy_(
                self.dim, self.positions.to(parameter.device), self.values.to(parameter)
            )

    def read(self, model: Any) -> ChangedPart:
        """Returns the part with the values of a transformers model."""
        parameter = model.get_parameter(self.name).detach()
        values = parameter.index_select(self.dim, self.positions.to(parameter.device))
        return replace(self, values=values.clone().cpu())


@dataclass(frozen=True, eq=False)
class NeuronDelta:
    """Changed parameters of neurons: plain data for other processes.

    Attributes:
        parts: The changed parts.
    """

    parts: tuple[ChangedPart, ...]

    @cached_property
    def digest(self) -> str:
        """Digest of the changes, 32 hexadecimal digits."""
        content = hashlib.blake2b(digest_size=16)
        for part in self.parts:
            content.update(f"{part.name} {part.dim} {part.values.dtype}".encode())
            content.update(part.positions.numpy().tobytes())
            content.update(part.values.contiguous().view(torch.uint8).numpy().tobytes())
        return content.hexdigest()

    @contextmanager
    def applied(self, model: GatedModel) -> Iterator[None]:
        """A context in which the weights are changed; they are restored exactly."""
        before = [part.read(model.model) for part in self.parts]
        try:
            for part in self.parts:
                part.write(model.model)
            yield
        finally:
            for part in before:
                part.write(model.model)


def changed_parts(neurons: NeuronModel, columns: Columns) -> tuple[ChangedPart, ...]:
    """Returns the parameters of some neurons, with their values."""
    parts = []
    for layer, slices in neurons.slices.items():
        chosen = torch.from_numpy(neurons.indices[columns[neurons.layers[columns] == layer]])
        for part in slices if len(chosen) else ():
            positions = part.index[chosen].flatten().cpu()
            place = ChangedPart(part.path, part.dim, positions, torch.empty(0))
            parts.append(place.read(neurons.model.model))
    return tuple(parts)


def zeros(neurons: NeuronModel, columns: Columns) -> NeuronDelta:
    """Returns all parameters of some neurons with zeros as values."""
    parts = changed_parts(neurons, columns)
    return NeuronDelta(tuple(replace(p, values=torch.zeros_like(p.values)) for p in parts))


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        losses: Validation loss before training and after every epoch, in nats a token.
        best: The epoch whose weights were kept; 0 = the untuned weights.
        parameters: Number of trained parameters.
        delta: The kept weights.
    """

    losses: tuple[float, ...]
    best: int
    parameters: int
    delta: NeuronDelta


@dataclass(frozen=True, eq=False)
class Training:
    """A training: its neurons, its data and its options.

    Attributes:
        columns: The neurons to train.
        train: Gold answers to train on.
        validation: Gold answers that decide when to stop.
        options: Options of the training.
        seed: Seed of the order of the items.
        base: Weights that are changed while training, such as those of zeroed neurons.

    Raises:
        BadInput: There is no neuron or no item to train.
    """

    columns: Columns
    train: Sequence[Request]
    validation: Sequence[Request]
    options: TrainingOptions
    seed: int = 0
    base: NeuronDelta = NeuronDelta(())

    def __post_init__(self) -> None:
        if not len(self.columns):
            raise BadInput("there is no neuron to train: lower `sigma` or give `count`")
        if not len(self.train) or not len(self.validation):
            raise BadInput("training needs items to train on and items to decide when to stop")

    def digest(self, neurons: NeuronModel) -> str:
        """Returns the digest of all that determines the trained weights, 32 hexadecimal digits."""
        identity = [
            neurons.model.identity, neurons.model.dtype, self.columns.tolist(),
            [[gold.context, gold.continuation] for gold in self.train],
            [[gold.context, gold.continuation] for gold in self.validation],
            asdict(self.options), self.seed, self.base.digest,
        ]  # fmt: skip
        return hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()


def trained(
    neurons: NeuronModel, training: Training, folder: Path | None, stages: Stages
) -> Trained:
    """Trains neurons on gold answers, or reads the weights of the same training from a folder.

    The optimizer gets only the columns and rows of weights that belong to the neurons, as separate
    tensors that are written back; no other weight of the model is written. The weights of the epoch
    with the lowest validation loss are kept, untuned weights included.

    Args:
        neurons: The model, whose weights are restored.
        training: The training.
        folder: Folder of trained weights, with a file for each training; None keeps no file.
        stages: Receives the progress of the training.

    Raises:
        BadInput: The folder cannot be written.
    """
    if folder is None:
        return _train(neurons, training, stages)
    file = folder / f"{training.digest(neurons)}.pt"
    if not file.is_file():
        check_out_folder(folder)
        torch.save(_train(neurons, training, stages), file.with_suffix(".part"))
        os.replace(file.with_suffix(".part"), file)
    with torch.serialization.safe_globals([Trained, NeuronDelta, ChangedPart]):
        done: Trained = torch.load(file, weights_only=True)
    return done


def _train(neurons: NeuronModel, training: Training, stages: Stages) -> Trained:
    model, options = neurons.model, training.options
    untuned = changed_parts(neurons, training.columns)
    parameters = [model.model.get_parameter(part.name) for part in untuned]
    # the trained part of every parameter, in float32, whatever the model's number format
    weights = [
        torch.nn.Parameter(part.values.to(parameter.device).float())
        for part, parameter in zip(untuned, parameters, strict=True)
    ]
    tuned = [
        replace(part, positions=part.positions.to(values.device), values=values)
        for part, values in zip(untuned, weights, strict=True)
    ]
    optimizer = torch.optim.Adam(weights, lr=options.lr)
    rng = np.random.default_rng([training.seed, 7])
    done, rows = 0, options.epochs * len(training.train)
    stages.begin(rows)
    with ExitStack() as undo:
        undo.enter_context(training.base.applied(model))
        undo.enter_context(NeuronDelta(untuned).applied(model))  # restores the untuned weights
        undo.enter_context(model.in_use())
        losses = [_loss_over(model, training.validation, options.batch)]
        best, best_weights = 0, [values.detach().clone() for values in weights]
        for parameter in parameters:
            undo.callback(setattr, parameter, "grad", None)
            undo.callback(parameter.requires_grad_, parameter.requires_grad)
            parameter.requires_grad_(True)
        for epoch in range(1, options.epochs + 1):
            order = rng.permutation(len(training.train))
            for start in range(0, len(order), options.batch):
                batch = [training.train[n] for n in order[start : start + options.batch]]
                with torch.enable_grad():
                    total, tokens = _loss(model, batch)
                    (total / tokens).backward()  # type: ignore[no-untyped-call]
                for part, parameter in zip(tuned, parameters, strict=True):
                    if parameter.grad is not None:
                        gradient = parameter.grad.index_select(part.dim, part.positions)
                        part.values.grad = gradient.to(part.values.dtype)
                        parameter.grad = None
                optimizer.step()
                for part in tuned:
                    part.write(model.model)
                done += len(batch)
                stages.at(done, len(batch), rows)
            losses.append(_loss_over(model, training.validation, options.batch))
            if not math.isfinite(losses[-1]):
                break
            if losses[-1] < losses[best]:
                best, best_weights = epoch, [values.detach().clone() for values in weights]
            elif epoch - best >= options.patience:
                break
    changed = tuple(
        replace(part, values=values.to(part.values.dtype).cpu())
        for part, values in zip(untuned, best_weights, strict=True)
    )
    count = sum(values.numel() for values in weights)
    return Trained(tuple(losses), best, count, NeuronDelta((*training.base.parts, *changed)))


def _loss(model: GatedModel, golds: Sequence[Request]) -> tuple[Tensor, int]:
    """Returns the negative log-probability of gold answers in nats, and the number of tokens."""
    read = [(*gold.context, *gold.continuation)[:-1] for gold in golds]
    tokens, attention = left_padded(read, device=model.device)
    keep = [len(gold.continuation) for gold in golds]
    logits, _ = model.forward(tokens, attention, keep=keep)
    targets = torch.tensor(
        [token for gold in golds for token in gold.continuation], device=logits.device
    )
    total = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
    return total, sum(keep)


@torch.no_grad()
def _loss_over(model: GatedModel, golds: Sequence[Request], batch: int) -> float:
    total, tokens = 0.0, 0
    for start in range(0, len(golds), 4 * batch):
        loss, count = _loss(model, golds[start : start + 4 * batch])
        total, tokens = total + float(loss), tokens + count
    return total / tokens
