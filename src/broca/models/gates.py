"""Gates: factors on components' outputs, different for every row of a batch.

A query head's output is its slice of the *input* of the attention output projection. A forward
pre-hook there multiplies `[rows, tokens, heads, head_dim]` by gates `[rows, heads]`. Key/value
groups and whole attention layers are wider slices of the same input; MLP blocks, decoder layers and
routed experts are gated at other places. A gate of 1 leaves the activations bit-identical; 0
ablates; other values scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

GatePlace = Literal["input", "output", "update", "routing"]
"""Place of a gate: slices of a module's input, its output, the update that a layer adds to its
input, or the routing weights of experts."""


@dataclass(frozen=True)
class GatePoint:
    """A module at which neighbouring components are gated.

    Attributes:
        module: The module.
        path: Dotted name of the module, for messages.
        layer: Decoder layer, from 0.
        place: Place of the gates.
        first_column: Column of the first component; the others follow.
        units: Number of components.
        width: Width of a component's slice of the input; 0 at other places.
    """

    module: nn.Module
    path: str
    layer: int
    place: GatePlace
    first_column: int
    units: int
    width: int = 0

    @property
    def columns(self) -> slice:
        """Columns of the point in the component set."""
        return slice(self.first_column, self.first_column + self.units)


Replacement = Mapping[GatePoint, Tensor]
"""Replacement of ablated activations at each point: `(rows, width)`, or `(rows, tokens, width)` if
it differs between tokens; a missing point gets zeros."""


class ActiveGates:
    """Gates of the rows of a batch, active within `with` for any number of forward passes.

    `select` and `extend` follow a batch that loses and gains rows between passes. If all gates of a
    point are 1, no hook is installed.

    Args:
        points: Gate points of the components.
        values: Gate of every row and component, `(rows, components)`; differentiable.
        replacement: Replacement of ablated activations; zeros by default.
        force: Whether to multiply even if all gates of a point are 1 (for the self-test).
        every_row: Whether `values` is one row that applies to all rows of batches of any size.
    """

    def __init__(
        self,
        points: Sequence[GatePoint],
        values: Tensor,
        *,
        replacement: Replacement | None = None,
        force: bool = False,
        every_row: bool = False,
    ) -> None:
        self._every_row = every_row
        self._points = points
        self._values = values
        self._replacement = dict(replacement or {})
        self._force = force or values.requires_grad
        self._hooks = ExitStack()
        self._refresh()

    def _refresh(self) -> None:
        closed = (self._values.detach() != 1).any(dim=0).cpu()
        self._closed = [
            point for point in self._points if self._force or bool(closed[point.columns].any())
        ]

    def __enter__(self) -> ActiveGates:
        with ExitStack() as hooks:
            for point in self._closed:
                hooks.callback(_INSTALL[point.place](point, self).remove)
            self._hooks = hooks.pop_all()  # all hooks, or none after an error
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()

    def select(self, rows: Tensor) -> None:
        """Keeps the gates of `rows` (indices of the current rows), in that order."""
        self._values = self._values[rows.to(self._values.device)]
        self._replacement = {
            point: tensor[rows.to(tensor.device)] for point, tensor in self._replacement.items()
        }
        self._refresh()

    def extend(self, other: ActiveGates) -> None:
        """Appends the rows of other gates."""
        self._values = torch.cat([self._values, other._values.to(self._values.device)])
        self._replacement = {
            point: torch.cat([tensor, other._replacement[point].to(tensor.device)])
            for point, tensor in self._replacement.items()
        }
        self._refresh()

    def of(self, point: GatePoint, like: Tensor) -> Tensor:
        """Returns the gates of a point, `(rows, units)`, in an activation's type and device."""
        return self._values[:, point.columns].to(device=like.device, dtype=like.dtype)

    def mix(self, point: GatePoint, activation: Tensor, gates: Tensor) -> Tensor:
        """Gates an activation whose last dimension is divided into the point's components.

        Args:
            point: The gate point.
            activation: The activation, `(rows, tokens, width)`.
            gates: The gates, `(rows, units)`, or one row for all.

        Raises:
            RuntimeError: The numbers of rows of the batch and of the gates differ.
        """
        # some blocks flatten the projection's input to (rows * tokens, width)
        shaped = activation
        if activation.dim() != 3:
            shaped = activation.reshape(len(gates), -1, activation.shape[-1])
        if len(gates) != len(shaped) and not self._every_row:
            raise RuntimeError(
                f"{point.path} was run on {len(shaped)} rows under gates for {len(gates)}"
            )
        # (rows, tokens, units, width) * (rows, 1, units, 1)
        slices = shaped.reshape(*shaped.shape[:-1], point.units, -1)
        wide = gates[:, None, :, None]
        replacement = self._replacement.get(point)
        if replacement is None:
            return (slices * wide).reshape(activation.shape)
        # one replacement for all tokens, or one for each token
        tokens = replacement.shape[1] if replacement.dim() == 3 else 1
        instead = replacement.to(slices).reshape(len(gates), tokens, point.units, -1)
        # exact at a gate of 1, and differentiable there
        return (slices + (wide - 1) * (slices - instead)).reshape(activation.shape)


def _on_input(point: GatePoint, active: ActiveGates) -> RemovableHandle:
    def hook(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (active.mix(point, args[0], active.of(point, args[0])), *args[1:])

    return point.module.register_forward_pre_hook(hook)


def _on_output(point: GatePoint, active: ActiveGates) -> RemovableHandle:
    def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        after = output[0] if isinstance(output, tuple) else output
        gates = active.of(point, after)
        if point.place == "output":
            replaced = active.mix(point, after, gates)
        else:
            update = after - (args[0] if args else kwargs["hidden_states"])
            # `after` exactly for gate 1 and the input for gate 0; differentiable everywhere
            replaced = after + (active.mix(point, update, gates) - update)
        return (replaced, *output[1:]) if isinstance(output, tuple) else replaced

    return point.module.register_forward_hook(hook, with_kwargs=True)


def _on_routing(point: GatePoint, active: ActiveGates) -> RemovableHandle:
    def hook(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden, index, weights, *other_arguments = args
        gates = active.of(point, weights)
        tokens = index.reshape(-1, index.shape[-1])  # (rows * tokens, chosen)
        row = torch.arange(len(tokens), device=index.device) // (len(tokens) // len(gates))
        # some routers pass the weights of every expert, chosen or not
        every = weights.shape[-1] != index.shape[-1]
        chosen = gates[row] if every else gates[row[:, None], tokens]
        return (hidden, index, weights * chosen.reshape(weights.shape), *other_arguments)

    return point.module.register_forward_pre_hook(hook)


_INSTALL = {
    "input": _on_input,
    "output": _on_output,
    "update": _on_output,
    "routing": _on_routing,
}


@contextmanager
def captured(points: Sequence[GatePoint]) -> Iterator[dict[GatePoint, Tensor]]:
    """Records the last activation of every point, before its gates.

    For points at the input of a projection this is the input, for others the module's output or
    update; routing weights have no activation and are left out.

    Yields:
        A dictionary that a forward pass within the context fills, `(rows, tokens, width)`.
    """
    activations: dict[GatePoint, Tensor] = {}

    def watch(point: GatePoint) -> RemovableHandle:
        def on_input(_module: nn.Module, args: tuple[Any, ...]) -> None:
            activations[point] = args[0].detach()

        def on_output(
            _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
        ) -> None:
            first = output[0] if isinstance(output, tuple) else output
            if point.place == "update":
                first = first - (args[0] if args else kwargs["hidden_states"])
            activations[point] = first.detach()

        if point.place == "input":
            return point.module.register_forward_pre_hook(on_input)
        return point.module.register_forward_hook(on_output, with_kwargs=True)

    with ExitStack() as hooks:
        for point in points:
            if point.place != "routing":
                hooks.callback(watch(point).remove)
        yield activations
