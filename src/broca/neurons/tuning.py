"""Trains the parameters of chosen neurons and nothing else; everything is put back afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from broca.engine.work import left_padded
from broca.errors import BadInput
from broca.neurons.locating import NeuronModel
from broca.neurons.questions import Question, QuestionSet
from broca.neurons.selection import Columns


@dataclass(frozen=True)
class TuningOptions:
    """How neurons are trained.

    Attributes:
        lr: Learning rate of Adam.
        epochs: Most passes over the training items.
        batch: Items of a step.
        patience: Epochs without a lower validation loss before training stops.
    """

    lr: float = 1e-5
    epochs: int = 20
    batch: int = 8
    patience: int = 3

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("batch", self.batch)):
            if value < 1:
                raise BadInput(f"--{name} must be at least 1, not {value}")
        if self.patience < 1:
            raise BadInput(f"--patience must be at least 1, not {self.patience}")
        if not self.lr > 0:
            raise BadInput(f"--lr must be above 0, not {self.lr:g}")


@dataclass(frozen=True)
class Tuned:
    """What training did.

    Attributes:
        losses: Validation loss before training and after every epoch, in nats a token.
        best: The epoch whose weights were kept; 0 = the untuned ones.
        parameters: Parameters trained.
    """

    losses: tuple[float, ...]
    best: int
    parameters: int


@dataclass(frozen=True)
class _Share:
    """The part of one parameter that is trained, apart from the rest of it."""

    whole: torch.nn.Parameter
    dim: int
    positions: Tensor
    own: torch.nn.Parameter  # float32, whatever the model's number format

    def write(self) -> None:
        """Puts the trained values into the model."""
        with torch.no_grad():
            self.whole.index_copy_(self.dim, self.positions, self.own.to(self.whole.dtype))

    def take_gradient(self) -> None:
        """Moves the model's gradient here; the rest of it is dropped."""
        if self.whole.grad is not None:
            gradient = self.whole.grad.index_select(self.dim, self.positions)
            self.own.grad = gradient.to(self.own.dtype)


def _shares(neurons: NeuronModel, columns: Columns) -> list[_Share]:
    shares = []
    for layer, slices in neurons.slices.items():
        start = neurons.first_column[layer]
        local = columns[neurons.layers[columns] == layer] - start
        if not len(local):
            continue
        for one in slices:
            positions = one.index[torch.from_numpy(local)].flatten().to(one.parameter.device)
            values = one.parameter.detach().index_select(one.dim, positions).float()
            shares.append(
                _Share(one.parameter, one.dim, positions, torch.nn.Parameter(values.clone()))
            )
    return shares


@contextmanager
def restored(neurons: NeuronModel, columns: Columns) -> Iterator[None]:
    """Puts the parameters of some neurons back, to the bit, when the context ends."""
    saved = [
        (share, share.whole.detach().index_select(share.dim, share.positions).clone())
        for share in _shares(neurons, columns)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for share, values in saved:
                share.whole.index_copy_(share.dim, share.positions, values)


@contextmanager
def zeroed(neurons: NeuronModel, columns: Columns) -> Iterator[None]:
    """Within the context, all parameters of some neurons are zero."""
    with restored(neurons, columns):
        with torch.no_grad():
            for share in _shares(neurons, columns):
                share.whole.index_fill_(share.dim, share.positions, 0)
        yield


@contextmanager
def tuned(
    neurons: NeuronModel,
    columns: Columns,
    train: QuestionSet,
    validation: QuestionSet,
    *,
    options: TuningOptions,
    seed: int = 0,
) -> Iterator[Tuned]:
    """Trains some neurons on gold answers; within the context the model is the trained one.

    Only the columns and rows of weights that belong to the neurons are given to the optimizer, as
    tensors of their own, and written back: no other number of the model is ever written. The
    weights of the epoch with the lowest validation loss are kept, the untuned ones included.

    Args:
        neurons: The model.
        columns: The neurons to train.
        train: Items to train on.
        validation: Items that decide when to stop.
        options: How to train.
        seed: Seed of the order of the items.

    Raises:
        BadInput: There is no neuron or no item to train.
    """
    if not len(columns):
        raise BadInput("there is no neuron to train: lower --sigma or give --count")
    if not len(train) or not len(validation):
        raise BadInput("training needs items to train on and items to decide when to stop")
    with restored(neurons, columns):
        yield _train(neurons, columns, train, validation, options, seed)


def _train(
    neurons: NeuronModel,
    columns: Columns,
    train: QuestionSet,
    validation: QuestionSet,
    options: TuningOptions,
    seed: int,
) -> Tuned:
    shares = _shares(neurons, columns)
    optimizer = torch.optim.Adam([share.own for share in shares], lr=options.lr)
    rng = np.random.default_rng([seed, 7])
    losses = [_loss_over(neurons, validation, options.batch)]
    best, kept = 0, [share.own.detach().clone() for share in shares]
    with neurons.model.in_use(), _gradients_of(shares):
        for epoch in range(1, options.epochs + 1):
            order = rng.permutation(len(train))
            for start in range(0, len(train), options.batch):
                batch = [train.questions[n] for n in order[start : start + options.batch]]
                with torch.enable_grad():
                    total, tokens = _loss(neurons, batch)
                    (total / tokens).backward()  # type: ignore[no-untyped-call]
                for share in shares:
                    share.take_gradient()
                optimizer.step()
                for share in shares:
                    share.write()
                    share.whole.grad = None
            losses.append(_loss_over(neurons, validation, options.batch))
            if not math.isfinite(losses[-1]):
                break
            if losses[-1] < losses[best]:
                best, kept = epoch, [share.own.detach().clone() for share in shares]
            elif epoch - best >= options.patience:
                break
    for share, values in zip(shares, kept, strict=True):
        with torch.no_grad():
            share.own.copy_(values)
        share.write()
    return Tuned(tuple(losses), best, sum(share.own.numel() for share in shares))


@contextmanager
def _gradients_of(shares: Sequence[_Share]) -> Iterator[None]:
    """Lets the whole parameters that hold the shares have gradients, for a while."""
    with ExitStack() as undo:
        for share in shares:
            undo.callback(setattr, share.whole, "grad", None)
            undo.callback(share.whole.requires_grad_, share.whole.requires_grad)
            share.whole.requires_grad_(True)
        yield


def _loss(neurons: NeuronModel, batch: Sequence[Question]) -> tuple[Tensor, int]:
    """Negative log-probability of gold answers, in nats: the sum, and how many tokens."""
    model = neurons.model
    golds = [question.gold for question in batch]
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
def _loss_over(neurons: NeuronModel, questions: QuestionSet, batch: int) -> float:
    total, tokens = 0.0, 0
    for start in range(0, len(questions), 4 * batch):
        loss, count = _loss(neurons, questions.questions[start : start + 4 * batch])
        total, tokens = total + float(loss), tokens + count
    return total / tokens
