"""Integrated gradients of every feed-forward neuron for the gold answer, in batches.

For a neuron with activation w_n at the last token of a context x, and the gold next token y,

    A_n(x) = w_n / (S + 1) * sum over k = 0..S of  dP(y | x; (k / S) w) / dw_n,

where all activations w of the neuron's layer (and of no other layer) are scaled together. Longer
answers are scored token by token under teacher forcing; the item's score is the mean.

Only the last token changes, so that the other tokens are read once (keys and values are kept) and
the layers below the scaled layer are not run again. Every (answer token, step) is a row: the rows
of many items share a batch, and one backward pass gives the gradients of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine import Engine
from broca.engine.batches import require_finite
from broca.engine.budget import Budget
from broca.models import GatedModel, NeuronBlock, last_token_replaced, neuron_blocks
from broca.models.caches import is_plain, repeated
from broca.models.structure import recorded
from broca.tasks import Request

_KEPT_COST = 4
"""Cost of a token in the budget while the inputs of every layer are kept."""

_BACKWARD_COST = 8
"""Cost of a token in the budget while its activations are kept for the backward pass."""


@dataclass(frozen=True)
class ItemScores:
    """The scores of neurons on some items; neurons are ordered layer by layer.

    Attributes:
        scores: Scores, `(items, neurons)`.
        activations: Mean activation at the tokens before the answer's tokens, `(items, neurons)`.
        probability: Mean p(gold token) over the answer's tokens, `(items,)`.
        residual: |sum of a layer's scores - (p at full activations - p at zero activations)|, mean
            over the layers and the answer's tokens: the integration error; NaN with a single step,
            `(items,)`.
    """

    scores: NDArray[np.float32]
    activations: NDArray[np.float32]
    probability: NDArray[np.float32]
    residual: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Sequence[NDArray[np.float32]]) -> ItemScores:
        """Reads the vectors of observations, `(items, 2 * neurons + 2)`."""
        rows = np.stack(vectors)
        count = rows.shape[1] // 2 - 1
        return cls(rows[:, :count], rows[:, count:-2], rows[:, -2], rows[:, -1])


@dataclass(frozen=True)
class IntegratedGradients:
    """The scores of every neuron for an item, as an observation.

    Its vector holds scores, activations, probability and residual, `(2 * neurons + 2,)`; see
    `ItemScores`.

    Attributes:
        gold: The prompt with its gold answer.
        alphas: Factors of the activations at which gradients are taken.
        length: Approximate number of tokens.
    """

    kind: ClassVar[str] = "integrated gradients"

    gold: Request
    alphas: tuple[float, ...]
    length: int = field(compare=False)

    @property
    def key(self) -> str:
        """Everything that determines the vector besides weights, number format and tokenizer."""
        return repr((self.gold.context, self.gold.continuation, self.alphas))

    @classmethod
    def observe(
        cls, engine: Engine, observations: Sequence[IntegratedGradients]
    ) -> list[NDArray[np.float32]]:
        """Measures observations of equal `alphas` with an engine's model."""
        attributor = Attributor(
            engine.model, alphas=observations[0].alphas, token_budget=engine.token_budget
        )
        vectors = attributor.run([observation.gold for observation in observations])
        engine.observed_tokens += attributor.tokens
        return vectors


@dataclass(frozen=True)
class _Read:
    """The activations and caches of a forward pass over sequences of equal length."""

    tokens: Tensor  # (items, context + answer - 1)
    answers: Tensor  # (items, answer)
    context: int
    cache: Any | None
    hidden: dict[int, Tensor]  # by layer, (items, tokens, hidden)
    neurons: dict[int, Tensor]  # by layer, (items, tokens, neurons)
    probability: Tensor  # (items, answer)


class Attributor:
    """Scores the neurons of a model.

    Args:
        model: The model; its weights are frozen.
        alphas: Factors of the activations at which gradients are taken: `steps_of(19)` for
            integrated gradients, `(1.0,)` for gradient x activation.
        token_budget: Maximum number of tokens of a batch; None derives it from the free memory.
    """

    def __init__(
        self, model: GatedModel, *, alphas: Sequence[float], token_budget: int | None = None
    ) -> None:
        self._model = model
        self._blocks = neuron_blocks(model.structure)
        self._alphas = torch.tensor(alphas, dtype=torch.float32, device=model.device)
        self._budget = Budget(model, token_budget)
        self.tokens = 0
        """Number of tokens so far; a step counts as one, because the other tokens are kept."""

    def run(self, requests: Sequence[Request]) -> list[NDArray[np.float32]]:
        """Returns the vector of every request's continuation; see `ItemScores`.

        Args:
            requests: Contexts with their gold answers.

        Raises:
            BadLogits: The model returned NaN or infinite logits.
        """
        vectors: dict[int, NDArray[np.float32]] = {}

        def shape(position: int) -> tuple[int, int]:
            return len(requests[position].context), len(requests[position].continuation)

        longest_first = sorted(range(len(requests)), key=shape, reverse=True)
        for _, same_shape in groupby(longest_first, key=shape):
            positions = list(same_shape)
            while positions:
                batch = self._budget.batch(
                    positions, lambda position: sum(shape(position)), cost=_KEPT_COST
                )
                with self._model.in_use(), self._budget.attempt(len(batch)):
                    measured = self._batch([requests[position] for position in batch], batch)
                    vectors |= zip(batch, measured, strict=True)
                    del positions[: len(batch)]
        return [vectors[position] for position in range(len(requests))]

    def _batch(self, requests: list[Request], positions: Sequence[int]) -> NDArray[np.float32]:
        """Returns the vectors of requests of one shape, `(requests, 2 * neurons + 2)`."""
        read = self._read(requests, positions)
        items, answer = read.answers.shape
        widths = [block.width for block in self._blocks]
        scores = torch.zeros(items, sum(widths), device=self._model.device)
        activations = torch.zeros_like(scores)
        residual = torch.zeros(items, device=self._model.device)
        views = (torch.split(values, widths, 1) for values in (scores, activations))
        by_layer = list(zip(self._blocks, *views, strict=True))
        for last in range(read.context - 1, read.context - 1 + answer):
            for block, layer_scores, layer_activations in by_layer:
                activation = read.neurons[block.layer][:, last].float()
                summed, ends = self._integrate(read, last, block, activation)
                layer_scores += summed.to(scores) / answer
                layer_activations += activation.to(scores) / answer
                miss = summed.sum(1) - (ends[:, 1] - ends[:, 0])
                residual += miss.abs().to(residual) / (answer * len(self._blocks))
        if len(self._alphas) < 2:
            residual[:] = torch.nan
        ends = torch.stack([read.probability.mean(1).to(residual), residual], 1)
        return torch.cat([scores, activations, ends], 1).cpu().numpy()

    @torch.no_grad()
    def _read(self, requests: list[Request], positions: Sequence[int]) -> _Read:
        """Reads contexts and answers once, and keeps the state that the steps start from."""
        rows = [(*request.context, *request.continuation) for request in requests]
        sequences = torch.tensor(rows, device=self._model.device)
        tokens, context = sequences[:, :-1], len(requests[0].context)
        answers = sequences[:, context:]
        sharing = self._model.sharing(tokens.shape[1])
        self.tokens += tokens.numel()
        last_projections = {block.layer: block.part.module for block in self._blocks}
        with (
            self._model.resumption.layer_inputs() as inputs,
            recorded(last_projections) as activations,
        ):
            logits, cache = self._model.run_whole(
                tokens, torch.ones_like(tokens), keep=answers.shape[1], use_cache=True
            )
        require_finite(logits, positions)
        chosen = torch.softmax(logits.float(), -1).gather(-1, answers[..., None].to(logits.device))
        neurons = {
            block.layer: activations[block.layer].reshape(*tokens.shape, block.width)
            for block in self._blocks
        }
        return _Read(
            tokens=tokens, answers=answers, context=context,
            cache=cache if sharing.prefixes and is_plain(cache) else None,
            hidden=inputs if sharing.layers else {}, neurons=neurons, probability=chosen[..., 0],
        )  # fmt: skip

    def _integrate(
        self, read: _Read, last: int, block: NeuronBlock, activation: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the scores of a layer for an answer token.

        Args:
            read: The state of the items.
            last: Position of the token before the answer token.
            block: The layer.
            activation: Its activations at this token, `(items, neurons)`.

        Returns:
            Scores `(items, neurons)`, and p(gold) at the first and the last step `(items, 2)`.
        """
        items, steps = len(activation), len(self._alphas)
        gradient = torch.zeros_like(activation)
        reached = torch.zeros(items, steps, device=activation.device)
        new, cached = (last + 1, 0) if read.cache is None else (1, last)
        pending = range(items * steps)
        while pending:
            rows = self._budget.batch(pending, lambda _: new, cost=_BACKWARD_COST, cached=cached)
            with self._budget.attempt(len(rows)):
                row = torch.tensor(rows, device=activation.device)
                item, step = row // steps, row % steps
                value = activation[item] * self._alphas.to(activation)[step, None]
                slopes, probability = self._gradients(read, last, block, item, value)
                gradient.index_add_(0, item, slopes.to(gradient))
                reached[item, step] = probability.to(reached)
                pending = pending[len(rows) :]
        return activation * gradient / steps, reached[:, [0, -1]]

    @torch.enable_grad()
    def _gradients(
        self, read: _Read, last: int, block: NeuronBlock, item: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns dP/dvalue `(rows, neurons)` and P `(rows,)` with the last activations replaced.

        If keys and values were kept, only the last token is run, else the whole context.
        """
        item_in, start = item.to(read.tokens.device), 0 if read.cache is None else last
        tokens = read.tokens[item_in, start : last + 1]
        attention = torch.ones(len(item), last + 1, dtype=torch.long, device=tokens.device)
        cache, hidden = None, read.hidden.get(block.layer)
        if read.cache is not None and last:
            first = 0 if hidden is None else block.layer
            cache = repeated(read.cache, item_in, tokens=last, first_layer=first)
        resume: Any = nullcontext()
        if hidden is not None:
            below = hidden[item.to(hidden.device), start : last + 1]
            resume = self._model.resumption.at(block.layer, below)
        leaf = value.detach().requires_grad_()
        self.tokens += tokens.numel()
        with resume, last_token_replaced(block, leaf):
            logits, _ = self._model.forward(tokens, attention, keep=1, cache=cache)
        gold = read.answers[item_in, last + 1 - read.context].to(logits.device)
        probability = torch.softmax(logits[:, -1].float(), -1).gather(1, gold[:, None])[:, 0]
        (gradient,) = torch.autograd.grad(probability.sum(), leaf)
        return gradient, probability.detach()


def steps_of(steps: int) -> tuple[float, ...]:
    """Returns the factors k/S for k = 0..S."""
    return tuple(number / steps for number in range(steps + 1))
