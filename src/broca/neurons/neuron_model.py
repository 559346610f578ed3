"""A model with its feed-forward neurons in order: neuron i is column i everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from broca.components import Component
from broca.errors import BadInput
from broca.models import GatedModel, NeuronBlock, Slice, neuron_blocks, neuron_slices
from broca.neurons.selection import Columns


class NeuronModel:
    """A model with its feed-forward neurons in order.

    Args:
        model: The model, with `neurons` among its components.

    Raises:
        UnsupportedModel: The model routes tokens to experts, or has no feed-forward blocks.
        BadInput: The model was loaded without gates on neurons.
    """

    def __init__(self, model: GatedModel) -> None:
        self.model = model
        self.blocks: tuple[NeuronBlock, ...] = neuron_blocks(model.structure)
        self.layers: NDArray[np.intp] = np.concatenate(
            [np.full(block.width, block.layer, dtype=np.intp) for block in self.blocks]
        )
        """Layer of every neuron, `(neurons,)`."""
        kinds = np.array([component.kind for component in model.components])
        self.gates: NDArray[np.intp] = np.flatnonzero(kinds == "neuron")
        """Column of every neuron among the model's components, `(neurons,)`."""
        if len(self.gates) != len(self):
            raise BadInput(
                "the model's neurons have no gates: load it with `components` 'neurons' or "
                "'heads+neurons'"
            )

    def __len__(self) -> int:
        return len(self.layers)

    def masks(self, sets: Sequence[Columns]) -> NDArray[np.bool_]:
        """Returns masks that ablate sets of neurons, `(sets, components)`."""
        masks = np.zeros((len(sets), len(self.model.components)), dtype=bool)
        for mask, columns in zip(masks, sets, strict=True):
            mask[self.gates[columns]] = True
        return masks

    @cached_property
    def first_column(self) -> dict[int, int]:
        """Column of every layer's first neuron."""
        starts = np.cumsum([0, *(block.width for block in self.blocks)])
        return {block.layer: int(s) for block, s in zip(self.blocks, starts[:-1], strict=True)}

    @property
    def upward(self) -> float:
        """Sum over blocks of the share of layers from the block upward, which steps run through."""
        depth = self.model.structure.layers
        return sum((depth - block.layer) / depth for block in self.blocks)

    def index(self, column: int) -> int:
        """Returns the number of a neuron within its layer."""
        return int(column) - self.first_column[int(self.layers[column])]

    def name(self, column: int) -> str:
        """Returns the name of a neuron, such as `L3N40`."""
        return Component(int(self.layers[column]), "neuron", self.index(column)).name

    def names(self, columns: Columns) -> tuple[str, ...]:
        """Returns the names of some neurons."""
        return tuple(self.name(int(column)) for column in columns)

    @cached_property
    def slices(self) -> dict[int, tuple[Slice, ...]]:
        """The parameters of the neurons, layer by layer."""
        with self.model.in_use():
            return neuron_slices(self.model.model, self.blocks)

    @cached_property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return sum(parameter.numel() for parameter in self.model.model.parameters())

    def parameter_counts(self) -> NDArray[np.int64]:
        """Number of parameters of every neuron, `(neurons,)`."""
        counts = np.zeros(len(self), dtype=np.int64)
        for layer, slices in self.slices.items():
            counts[self.layers == layer] = sum(
                part.index.shape[1] * part.parameter.numel() // part.parameter.shape[part.dim]
                for part in slices
            )
        return counts
