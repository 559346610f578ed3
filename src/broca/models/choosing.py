"""Chooses the components of a model by kind: `heads`, `mlp`, `heads+mlp`, ..."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from broca.components import NAMINGS, Component, ComponentSet
from broca.errors import BadInput, UnknownName, UnsupportedModel, nearest
from broca.models.gates import GatePlace, GatePoint
from broca.models.neurons import neuron_blocks
from broca.models.structure import NamedModule, OutputProjection, Structure

Found = Iterator[tuple[NamedModule, int, int, int]]
"""Modules with components: the module, its layer, their number, and the width of each."""


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
            find=lambda structure: (
                (part.feed_forward, part.layer, 1, 0)
                for part in structure.parts
                if part.feed_forward is not None
            ),
        ),
        ComponentKind(
            name="layers", example="L12", place="update",
            help="decoder layer: what it adds to its input",
            find=lambda structure: (
                (part.decoder_layer, part.layer, 1, 0) for part in structure.parts
            ),
        ),
        ComponentKind(
            name="experts", example="L12E7", place="routing",
            help="routed expert: its weight in the router's choice",
            find=lambda structure: (
                (part.experts, part.layer, part.expert_count, 0)
                for part in structure.parts
                if part.experts is not None
            ),
        ),
        ComponentKind(
            name="neurons", example="L12N40", place="input",
            help="feed-forward neuron: its activation before the block's last matrix",
            find=lambda structure: (
                (block.part, block.layer, block.width, 1) for block in neuron_blocks(structure)
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
        if kind not in KINDS:
            raise UnknownName(
                f"components '{kind}' are unknown{nearest(kind, KINDS)}; use {', '.join(KINDS)}, "
                "or several joined by +"
            )
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
            first = len(components)
            points.append(GatePoint(part.module, part.path, layer, kind.place, first, count, width))
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
