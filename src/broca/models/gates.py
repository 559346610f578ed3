"""Gates: factors on components' outputs, one set for every row of a batch.

A query head's output is its slice of the *input* of the attention output projection. A forward
pre-hook there multiplies `[rows, tokens, heads, head_dim]` by gates `[rows, heads]`. A gate of 1
leaves the activations bit for bit as they were; 0 ablates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class GatePoint:
    """A module whose input is cut into slices of equal width, one for each component.

    Attributes:
        module: The projection at whose input the gates act.
        path: Its dotted name, for messages.
        layer: Decoder layer, from 0.
        first_column: Column of its first component; the others follow.
        units: Number of components.
        width: Width of one component's slice.
    """

    module: nn.Module
    path: str
    layer: int
    first_column: int
    units: int
    width: int

    @property
    def columns(self) -> slice:
        """The point's columns in the component set."""
        return slice(self.first_column, self.first_column + self.units)


class ActiveGates:
    """The gates in force within `gated(...)`; `select` follows a batch that loses rows."""

    def __init__(self, values: Tensor, points: Sequence[GatePoint], *, force: bool) -> None:
        self._values = values
        self._force = force
        self._points = points
        self._per_point: dict[GatePoint, Tensor | None] = {}
        self._refresh()

    def _refresh(self) -> None:
        closed = (self._values != 1).any(dim=0).cpu()
        for point in self._points:
            needed = self._force or bool(closed[point.columns].any())
            self._per_point[point] = self._values[:, point.columns] if needed else None

    def select(self, rows: Tensor) -> None:
        """Keeps the gates of `rows` (indices into the present rows), in that order."""
        self._values = self._values[rows.to(self._values.device)]
        self._refresh()

    def apply(self, point: GatePoint, activation: Tensor) -> Tensor | None:
        """Returns the gated input of a point, or None where every gate is 1.

        Args:
            point: Where the activation was met.
            activation: Input of the projection, `(rows, tokens, units * width)`.

        Raises:
            RuntimeError: The batch has another number of rows than there are gates.
        """
        gates = self._per_point[point]
        if gates is None:
            return None
        rows = activation.shape[0]
        if gates.shape[0] != rows:
            raise RuntimeError(
                f"{point.path} was run on {rows} rows under gates for {gates.shape[0]}"
            )
        gates = gates.to(device=activation.device, dtype=activation.dtype)
        # (rows, tokens, units, width) * (rows, 1, units, 1)
        slices = activation.view(*activation.shape[:-1], point.units, point.width)
        replaced: Tensor = (slices * gates[:, None, :, None]).view(activation.shape)
        return replaced


@contextmanager
def gated(
    points: Sequence[GatePoint], values: Tensor, *, force: bool = False
) -> Iterator[ActiveGates]:
    """Puts gates on a model for the time of the context.

    Args:
        points: Where the components' outputs are met.
        values: One gate for every row and component, `(rows, components)`.
        force: Multiply even where every gate of a point is 1 (the self-test does).

    Yields:
        The gates in force.
    """
    active = ActiveGates(values, points, force=force)

    def hook_for(point: GatePoint) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            replaced = active.apply(point, args[0])
            return None if replaced is None else (replaced, *args[1:])

        return hook

    with ExitStack() as hooks:
        for point in points:
            hooks.callback(point.module.register_forward_pre_hook(hook_for(point)).remove)
        yield active


@contextmanager
def captured_inputs(points: Sequence[GatePoint]) -> Iterator[dict[GatePoint, Tensor]]:
    """Records the last input of every point, as it enters the projection.

    Yields:
        A dictionary that a forward pass within the context fills.
    """
    inputs: dict[GatePoint, Tensor] = {}

    def hook_for(point: GatePoint) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...]) -> None:
            inputs[point] = args[0].detach()

        return hook

    with ExitStack() as hooks, torch.no_grad():
        for point in points:
            hooks.callback(point.module.register_forward_pre_hook(hook_for(point)).remove)
        yield inputs
