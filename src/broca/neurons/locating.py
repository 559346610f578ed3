"""Locates the neurons that a data set has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca.components import Component
from broca.engine import Progress
from broca.errors import BadInput
from broca.models import GatedModel, NeuronBlock, Slice, neuron_blocks, neuron_slices
from broca.neurons.gradients import Attribution, Attributor, steps_of
from broca.neurons.questions import Question, QuestionSet
from broca.neurons.scorebook import Scorebook, key_of
from broca.neurons.selection import Columns

Score = Literal["integrated", "gradient"]
"""Integrated gradients, or the gradient at the whole activation times the activation."""

Tell = Callable[[str, Progress | None], None]


@dataclass(frozen=True)
class ItemScores:
    """The scores of a data set's items.

    Attributes:
        scores: `(items, neurons)`.
        activations: Mean activation before the answer's tokens, `(items, neurons)`.
        probability: p(gold token), `(items,)`.
        residual: Error of the steps against completeness, `(items,)`.
        computed: How many items were computed in this run; the others were read from disk.
    """

    scores: NDArray[np.float32]
    activations: NDArray[np.float32]
    probability: NDArray[np.float32]
    residual: NDArray[np.float32]
    computed: int


class NeuronModel:
    """A model with its feed-forward neurons in order: neuron i is column i everywhere.

    Args:
        model: The model, with `neurons` among its components if it is to be ablated.

    Raises:
        UnsupportedModel: It routes tokens to experts, or has no feed-forward blocks.
    """

    def __init__(self, model: GatedModel) -> None:
        self.model = model
        self.blocks: tuple[NeuronBlock, ...] = neuron_blocks(model.structure)
        self.layers: NDArray[np.intp] = np.concatenate(
            [np.full(block.width, block.layer, dtype=np.intp) for block in self.blocks]
        )
        """Layer of every neuron, `(neurons,)`."""

    def __len__(self) -> int:
        return len(self.layers)

    @cached_property
    def first_column(self) -> dict[int, int]:
        """Column of every layer's first neuron."""
        starts = np.cumsum([0, *(block.width for block in self.blocks)])
        return {block.layer: int(s) for block, s in zip(self.blocks, starts[:-1], strict=True)}

    def name(self, column: int) -> str:
        """The name of a neuron, such as `L3N40`."""
        layer = int(self.layers[column])
        return Component(layer, "neuron", int(column) - self.first_column[layer]).name

    def names(self, columns: Columns) -> tuple[str, ...]:
        """The names of some neurons."""
        return tuple(self.name(int(column)) for column in columns)

    def columns(self, names: Sequence[str]) -> Columns:
        """The columns of named neurons, sorted.

        Raises:
            BadInput: A name is not that of a neuron of this model.
        """
        found = []
        width = {block.layer: block.width for block in self.blocks}
        for name in names:
            one = Component.parse(name)
            if one.kind != "neuron" or not 0 <= (one.index or 0) < width.get(one.layer, 0):
                raise BadInput(
                    f"the model has no neuron '{name}': it has {len(self)}, from {self.name(0)} to "
                    f"{self.name(len(self) - 1)}"
                )
            found.append(self.first_column[one.layer] + (one.index or 0))
        return np.array(sorted(set(found)), dtype=np.intp)

    @cached_property
    def slices(self) -> dict[int, tuple[Slice, ...]]:
        """The parameters of the neurons, layer by layer."""
        with self.model.in_use():
            return neuron_slices(self.model.model, self.blocks)

    def parameter_counts(self) -> NDArray[np.int64]:
        """Parameters of every neuron, `(neurons,)`."""
        counts = np.zeros(len(self), dtype=np.int64)
        for layer, slices in self.slices.items():
            each = sum(
                one.index.shape[1] * one.parameter.numel() // one.parameter.shape[one.dim]
                for one in slices
            )
            counts[self.layers == layer] = each
        return counts


def item_scores(
    neurons: NeuronModel,
    questions: QuestionSet,
    *,
    steps: int = 19,
    score: Score = "integrated",
    book: Path | None = None,
    token_budget: int | None = None,
    tell: Tell | None = None,
) -> ItemScores:
    """Scores every neuron for every question.

    Args:
        neurons: The model.
        questions: The data set.
        steps: S: gradients are taken at S + 1 points from none to all of the activation.
        score: Integrated gradients, or gradient x activation (one point).
        book: File of the items that are known already; new ones are added as they come.
        token_budget: Most tokens of a batch; found from the free memory if None.
        tell: Receives how far it is.

    Raises:
        BadInput: Fewer than one step, no questions, or an unknown score.
    """
    if steps < 1:
        raise BadInput(f"--steps must be at least 1, not {steps}")
    if score not in get_args(Score):
        raise BadInput(f"score '{score}' is unknown: use integrated or gradient")
    if not len(questions):
        raise BadInput(f"data set '{questions.name}' has no questions to locate on")
    alphas = steps_of(steps) if score == "integrated" else (1.0,)
    model, count = neurons.model, len(neurons)
    keys = [_key(model, alphas, question) for question in questions.questions]
    with Scorebook(book, 2 * count + 2) as known:
        missing = [index for index, key in enumerate(keys) if known.get(key) is None]
        attributor = Attributor(model, neurons.blocks, alphas=alphas, token_budget=token_budget)
        done = 0

        def store(position: int, found: Attribution) -> None:
            nonlocal done
            ends = np.array([found.probability, found.residual], dtype=np.float32)
            known.put(
                keys[missing[position]], np.concatenate([found.scores, found.activations, ends])
            )
            done += 1
            if tell is not None:
                stage = f"scoring neurons on {questions.name}"
                tell(stage, Progress(done, len(missing), attributor.tokens))

        attributor.run([questions.questions[index].gold for index in missing], store)
        rows = [known.get(key) for key in keys]
    whole = np.stack([row for row in rows if row is not None])
    return ItemScores(
        scores=whole[:, :count],
        activations=whole[:, count : 2 * count],
        probability=whole[:, -2],
        residual=whole[:, -1],
        computed=len(missing),
    )


def _key(model: GatedModel, alphas: tuple[float, ...], question: Question) -> bytes:
    gold = question.gold
    return key_of(model.fingerprint, model.dtype, alphas, gold.context, gold.continuation)
