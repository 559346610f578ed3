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
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from broca.errors import BadInput
from broca.models import GatedModel
from broca.models.caches import left_padded
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.selection import Columns
from broca.options import TrainingOptions
from broca.results.files import check_out_folder
from broca.runs.progress import Stages, silent
from broca.tasks import Request

PASSES = 3
"""Cost in rows of an item of a training step: a backward pass takes as long as two forward
passes."""


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
                self.dim, self.positions.to(parameter.device), self.values.to(parameter.device)
            )

    def read(self, model: Any) -> ChangedPart:
        """Returns the part with the values of a transformers model."""
        parameter = model.get_parameter(self.name).detach()
        values = parameter.index_select(self.dim, self.positions.to(parameter.device))
        return ChangedPart(self.name, self.dim, self.positions, values.clone().cpu())


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
        local = columns[neurons.layers[columns] == layer] - neurons.first_column[layer]
        if not len(local):
            continue
        for part in slices:
            positions = part.index[torch.from_numpy(local)].flatten().cpu()
            place = ChangedPart(part.path, part.dim, positions, torch.empty(0))
            parts.append(place.read(neurons.model.model))
    return tuple(parts)


def zeros(neurons: NeuronModel, columns: Columns) -> NeuronDelta:
    """Returns all parameters of some neurons with zeros as values."""
    return NeuronDelta(
        tuple(
            ChangedPart(part.name, part.dim, part.positions, torch.zeros_like(part.values))
            for part in changed_parts(neurons, columns)
        )
    )


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
    neurons: NeuronModel,
    training: Training,
    folder: Path | None = None,
    *,
    stages: Stages | None = None,
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
    stages = stages or Stages(silent)
    if folder is None:
        return _train(neurons, training, stages)
    file = folder / f"{training.digest(neurons)}.safetensors"
    if not file.is_file():
        check_out_folder(folder)
        _save(_train(neurons, training, stages), file)
    return _load(file)


def _save(done: Trained, file: Path) -> None:
    """Writes a training to a temporary file and renames it."""
    from safetensors.torch import save_file

    tensors = {}
    for number, part in enumerate(done.delta.parts):
        tensors[f"{number}.positions"] = part.positions.contiguous()
        tensors[f"{number}.values"] = part.values.contiguous()
    record = {
        "losses": done.losses, "best": done.best, "parameters": done.parameters,
        "parts": [[part.name, part.dim] for part in done.delta.parts],
    }  # fmt: skip
    temporary = file.with_suffix(".part")
    save_file(tensors, temporary, metadata={"broca": json.dumps(record)})
    os.replace(temporary, file)


def _load(file: Path) -> Trained:
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        record = json.loads(opened.metadata()["broca"])
        parts = tuple(
            ChangedPart(
                name,
                dim,
                opened.get_tensor(f"{number}.positions"),
                opened.get_tensor(f"{number}.values"),
            )
            for number, (name, dim) in enumerate(record["parts"])
        )
    losses = tuple(float(loss) for loss in record["losses"])
    return Trained(losses, record["best"], record["parameters"], NeuronDelta(parts))


@dataclass(frozen=True)
class _Share:
    """The trained part of a parameter, as a separate tensor."""

    parameter: torch.nn.Parameter
    dim: int
    positions: Tensor
    weights: torch.nn.Parameter  # float32, whatever the model's number format

    def write(self) -> None:
        """Writes the trained values into the model."""
        with torch.no_grad():
            self.parameter.index_copy_(
                self.dim, self.positions, self.weights.to(self.parameter.dtype)
            )

    def take_gradient(self) -> None:
        """Moves the gradient of this part to `weights`."""
        if self.parameter.grad is not None:
            gradient = self.parameter.grad.index_select(self.dim, self.positions)
            self.weights.grad = gradient.to(self.weights.dtype)


def _train(neurons: NeuronModel, training: Training, stages: Stages) -> Trained:
    model, options = neurons.model, training.options
    untuned = changed_parts(neurons, training.columns)
    shares = []
    for part in untuned:
        parameter = model.model.get_parameter(part.name)
        weights = torch.nn.Parameter(part.values.to(parameter.device).float())
        shares.append(_Share(parameter, part.dim, part.positions.to(parameter.device), weights))
    optimizer = torch.optim.Adam([share.weights for share in shares], lr=options.lr)
    rng = np.random.default_rng([training.seed, 7])
    validation = len(training.validation)
    rows = options.epochs * (PASSES * len(training.train) + validation) + validation
    done = len(training.validation)
    stages.begin(rows)
    stages.at(0, done, rows)
    # `NeuronDelta(untuned)` restores the untuned weights at the end
    with training.base.applied(model), NeuronDelta(untuned).applied(model), model.in_use():
        losses = [_loss_over(model, training.validation, options.batch)]
        best, best_weights = 0, [share.weights.detach().clone() for share in shares]
        with _gradients_of(shares):
            for epoch in range(1, options.epochs + 1):
                order = rng.permutation(len(training.train))
                for start in range(0, len(order), options.batch):
                    batch = [training.train[n] for n in order[start : start + options.batch]]
                    with torch.enable_grad():
                        total, tokens = _loss(model, batch)
                        (total / tokens).backward()  # type: ignore[no-untyped-call]
                    for share in shares:
                        share.take_gradient()
                    optimizer.step()
                    for share in shares:
                        share.write()
                        share.parameter.grad = None
                    done += PASSES * len(batch)
                    stages.at(done, PASSES * len(batch), rows)
                losses.append(_loss_over(model, training.validation, options.batch))
                done += len(training.validation)
                stages.at(done, 0, rows)
                if not math.isfinite(losses[-1]):
                    break
                if losses[-1] < losses[best]:
                    best, best_weights = epoch, [share.weights.detach().clone() for share in shares]
                elif epoch - best >= options.patience:
                    break
    changed = tuple(
        ChangedPart(part.name, part.dim, part.positions, values.to(part.values.dtype).cpu())
        for part, values in zip(untuned, best_weights, strict=True)
    )
    count = sum(share.weights.numel() for share in shares)
    return Trained(tuple(losses), best, count, NeuronDelta((*training.base.parts, *changed)))


@contextmanager
def _gradients_of(shares: Sequence[_Share]) -> Iterator[None]:
    """A context in which the parameters of the shares have gradients."""
    with ExitStack() as undo:
        for share in shares:
            undo.callback(setattr, share.parameter, "grad", None)
            undo.callback(share.parameter.requires_grad_, share.parameter.requires_grad)
            share.parameter.requires_grad_(True)
        yield


def _loss(model: GatedModel, golds: Sequence[Request]) -> tuple[Tensor, int]:
    """Returns the negative log-probability of gold answers in nats, and the number of tokens."""
    read = [(*gold.context, *gold.continuation)[:-1] for gold in golds]
    tokens, attention = left_padded(read, device=model.device)
    keep = max(len(gold.continuation) for gold in golds)
    logits, _ = model.forward(tokens, attention, keep=keep)
    targets = torch.full((len(golds), keep), -100, device=logits.device)
    for row, gold in enumerate(golds):
        targets[row, keep - len(gold.continuation) :] = torch.tensor(gold.continuation)
    total = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum"
    )
    return total, sum(len(gold.continuation) for gold in golds)


@torch.no_grad()
def _loss_over(model: GatedModel, golds: Sequence[Request], batch: int) -> float:
    total, tokens = 0.0, 0
    for start in range(0, len(golds), 4 * batch):
        loss, count = _loss(model, golds[start : start + 4 * batch])
        total, tokens = total + float(loss), tokens + count
    return total / tokens
