"""Gates: factors on components' outputs, different for every row of a batch; kinds of components.

A query head's output is its slice of the *input* of the attention output projection. A forward
pre-hook there multiplies `[rows, tokens, heads, head_dim]` by gates `[rows, heads]`. Key/value
groups and whole attention layers are wider slices of the same input; MLP blocks, decoder layers and
routed experts are gated at other places. A gate of 1 leaves the activations bit-identical; 0
ablates; other values scale. `KINDS` has what `components` can name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from broca.components import NAMINGS, Component, ComponentSet
from broca.errors import BadInput, UnknownName, UnsupportedModel, require_known
from broca.models.neurons import neuron_blocks
from broca.models.structure import NamedModule, OutputProjection, Structure

GatePlace = Literal["input", "output", "update", "routing"]
"""Place of a gate: slices of a module's input, its output, the update that a layer adds to its
input, or the routing weights of experts."""


@dataclass(frozen=True)
class GatePoint:
    """A module at which neighbouring components are gated.

    Attributes:
        module: The module.
        path: Dotted name of the module, for messages.
        place: Place of the gates.
        first_column: Column of the first component; the others follow.
        units: Number of components.
        width: Width of a component's slice of the input; 0 at other places.
        row_axis: Axis of the rows in an update, which several residual streams may precede.
    """

    module: nn.Module
    path: str
    place: GatePlace
    first_column: int
    units: int
    width: int = 0
    row_axis: int = 0

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
                if point.place == "routing":
                    hooks.enter_context(self._on_routing(point))
                else:
                    hooks.enter_context(on_activation(point, partial(self._mix, point)))
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

    def _of(self, point: GatePoint, like: Tensor) -> Tensor:
        """Returns the gates of a point, `(rows, units)`, in an activation's type and device."""
        return self._values[:, point.columns].to(device=like.device, dtype=like.dtype)

    def _mix(self, point: GatePoint, activation: Tensor) -> Tensor:
        """Gates an activation whose last dimension is divided into the point's components.

        Args:
            point: The gate point.
            activation: The activation, `(rows, tokens, width)`.

        Raises:
            RuntimeError: The numbers of rows of the batch and of the gates differ.
        """
        gates = self._of(point, activation)
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

    def _on_routing(self, point: GatePoint) -> RemovableHandle:
        """Gates the weights that a router gives to the experts of each token."""

        def hook(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden, index, weights, *other_arguments = args
            gates = self._of(point, weights)
            tokens = index.reshape(-1, index.shape[-1])  # (rows * tokens, chosen)
            row = torch.arange(len(tokens), device=index.device) // (len(tokens) // len(gates))
            # some routers pass the weights of every expert, chosen or not
            every = weights.shape[-1] != index.shape[-1]
            chosen = gates[row] if every else gates[row[:, None], tokens]
            return (hidden, index, weights * chosen.reshape(weights.shape), *other_arguments)

        return point.module.register_forward_pre_hook(hook)


def on_activation(point: GatePoint, change: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Changes a point's activation in every forward pass until the handle is removed.

    Args:
        point: A point at the input of a projection, at an output or at an update.
        change: Returns the new activation, or None to leave it.
    """

    def on_input(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        after = change(args[0])
        return None if after is None else (after, *args[1:])

    def on_output(
        _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        before = output[0] if isinstance(output, tuple | list) else output
        if point.place == "output":
            after = change(before)
        else:
            update = before - (args[0] if args else kwargs["hidden_states"])
            axes = (point.row_axis, point.row_axis + 1)
            # (rows, tokens, width), or with streams before the width
            of_tokens = update.movedim(axes, (0, 1))
            after = change(of_tokens.flatten(2))
            if after is not None:
                # `before` exactly for gate 1 and the input for gate 0; differentiable everywhere
                after = after.reshape(of_tokens.shape).movedim((0, 1), axes)
                after = before + (after - update)
        if after is None:
            return None
        return (after, *output[1:]) if isinstance(output, tuple | list) else after

    if point.place == "input":
        return point.module.register_forward_pre_hook(on_input)
    return point.module.register_forward_hook(on_output, with_kwargs=True)


@contextmanager
def captured(points: Sequence[GatePoint]) -> Iterator[dict[GatePoint, Tensor]]:
    """Records the last activation of every point, before its gates.

    For points at the input of a projection this is the input, for others the module's output or
    update; routing weights have no activation and are left out.

    Yields:
        A dictionary that a forward pass within the context fills, `(rows, tokens, width)`.
    """
    activations: dict[GatePoint, Tensor] = {}

    def record(point: GatePoint, activation: Tensor) -> None:
        # the model may go on to change it in place (Falcon adds its attention to its MLP's output)
        activations[point] = activation.detach().clone()

    with ExitStack() as hooks:
        for point in points:
            if point.place != "routing":
                hooks.enter_context(on_activation(point, partial(record, point)))
        yield activations


Found = Iterator[tuple[NamedModule | None, int, int, int]]
"""Modules with components: the module if there is one, its layer, their number, and the width of
each."""


@dataclass(frozen=True, kw_only=True)
class ComponentKind:
    """The record of a kind of component.

    Attributes:
        name: Name of the kind in `components`.
        example: The name of such a component in layer 12.
        help: Description for the menu and the docs.
        place: Place of its gates.
        find: Finds the components in a model, module by module.
    """

    name: str
    example: str
    help: str
    place: GatePlace
    find: Callable[[Structure], Found]


def _slices(count: Callable[[OutputProjection], int]) -> Callable[[Structure], Found]:
    """Returns what finds components that divide the heads of every layer."""
    return lambda structure: (
        (p.entrance, p.layer, count(p), p.heads * p.head_dim // count(p))
        for p in structure.projections
    )


KINDS: dict[str, ComponentKind] = {
    kind.name: kind
    for kind in (
        ComponentKind(
            name="heads", example="L12H3", place="input", find=_slices(lambda p: p.heads),
            help="query head: its slice of the input of the attention output projection",
        ),
        ComponentKind(
            name="kv-groups", example="L12G1", place="input", find=_slices(lambda p: p.kv_heads),
            help="the query heads that share a key/value head",
        ),
        ComponentKind(
            name="attention", example="L12A", place="input", find=_slices(lambda p: 1),
            help="attention layer: all its query heads",
        ),
        ComponentKind(
            name="mlp", example="L12M", place="output",
            help="feed-forward block: its output, or the block's where experts share the work",
            find=lambda structure: ((p.feed_forward, p.layer, 1, 0) for p in structure.parts),
        ),
        ComponentKind(
            name="layers", example="L12", place="update",
            help="decoder layer: what it adds to its input",
            find=lambda structure: ((p.decoder_layer, p.layer, 1, 0) for p in structure.parts),
        ),
        ComponentKind(
            name="experts", example="L12E7", place="routing",
            help="routed expert: its weight in the router's choice",
            find=lambda structure: (
                (p.experts, p.layer, p.expert_count, 0) for p in structure.parts
            ),
        ),
        ComponentKind(
            name="neurons", example="L12N40", place="input",
            help="feed-forward neuron: its activation before the block's last matrix",
            find=lambda structure: (
                (p.part, p.layer, p.width, 1) for p in neuron_blocks(structure)
            ),
        ),
    )
}  # fmt: skip
"""The kinds by name; `components` joins several by `+`."""


def require_kinds(components: str) -> tuple[str, ...]:
    """Returns the kinds of components in a list that is joined by `+`.

    Raises:
        UnknownName: A kind does not exist.
        BadInput: A kind is named twice.
    """
    kinds = tuple(kind.strip() for kind in components.split("+"))
    if len(set(kinds)) != len(kinds):
        raise BadInput(f"`components` '{components}' names a kind twice")
    for kind in kinds:
        require_known("`components`", kind, KINDS, error=UnknownName)
    return kinds


def choose(
    structure: Structure, kinds: str, *, architecture: str
) -> tuple[ComponentSet, tuple[GatePoint, ...]]:
    """Lists the components of some kinds and their gate points.

    Args:
        structure: Structure of the model.
        kinds: One key of `KINDS`, or several joined by `+`.
        architecture: The model's class, for messages.

    Raises:
        UnknownName: A kind does not exist.
        BadInput: A kind is named twice.
        UnsupportedModel: No such components were found in the model.
    """
    components: list[Component] = []
    points: list[GatePoint] = []
    for name in require_kinds(kinds):
        before, kind = len(components), KINDS[name]
        sort = Component.parse(kind.example).kind
        for part, layer, count, width in kind.find(structure):
            if part is None:
                continue
            first = len(components)
            place = (kind.place, first, count, width, structure.row_axis)
            points.append(GatePoint(part.module, part.path, *place))
            indices = [None] if NAMINGS[sort].single else range(count)
            components += [Component(layer, sort, index) for index in indices]
        if len(components) == before:
            raise UnsupportedModel(
                f"no {name} were found in '{architecture}': `broca scan` lists what it has"
            )
    return ComponentSet(tuple(components)), tuple(points)


def kinds_of(components: Iterable[Component]) -> str:
    """Returns the kinds of some components, such as `heads+mlp`."""
    names = {Component.parse(kind.example).kind: name for name, kind in KINDS.items()}
    return "+".join(dict.fromkeys(names[component.kind] for component in components))
