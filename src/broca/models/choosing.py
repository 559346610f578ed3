"""Chooses the components of a model by kind: `heads`, `mlp`, `heads+mlp`, ..."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from broca.components import Component, ComponentSet
from broca.errors import BadInput, UnknownName, UnsupportedModel, nearest
from broca.models.gates import GatePlace, GatePoint
from broca.models.neurons import neuron_blocks
from broca.models.structure import NamedModule, Structure

ComponentGroup = tuple[NamedModule, int, list[Component], int]
"""A module, its layer, its components, and the width of each."""


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
    find: Callable[[Structure], Iterator[ComponentGroup]]


def _heads(structure: Structure) -> Iterator[ComponentGroup]:
    for projection in structure.projections:
        heads = [Component(projection.layer, "head", index) for index in range(projection.heads)]
        yield projection.entrance, projection.layer, heads, projection.head_dim


def _kv_groups(structure: Structure) -> Iterator[ComponentGroup]:
    for projection in structure.projections:
        indices = range(projection.kv_heads)
        groups = [Component(projection.layer, "kv-group", index) for index in indices]
        width = projection.heads // projection.kv_heads * projection.head_dim
        yield projection.entrance, projection.layer, groups, width


def _attention(structure: Structure) -> Iterator[ComponentGroup]:
    for projection in structure.projections:
        layer = [Component(projection.layer, "attention")]
        width = projection.heads * projection.head_dim
        yield projection.entrance, projection.layer, layer, width


def _mlp(structure: Structure) -> Iterator[ComponentGroup]:
    for part in structure.parts:
        if part.feed_forward is not None:
            yield part.feed_forward, part.layer, [Component(part.layer, "mlp")], 0


def _layers(structure: Structure) -> Iterator[ComponentGroup]:
    for part in structure.parts:
        yield part.decoder_layer, part.layer, [Component(part.layer, "layer")], 0


def _experts(structure: Structure) -> Iterator[ComponentGroup]:
    for part in structure.parts:
        if part.experts is not None:
            experts = [Component(part.layer, "expert", e) for e in range(part.expert_count)]
            yield part.experts, part.layer, experts, 0


def _neurons(structure: Structure) -> Iterator[ComponentGroup]:
    for block in neuron_blocks(structure):
        neurons = [Component(block.layer, "neuron", index) for index in range(block.width)]
        yield block.part, block.layer, neurons, 1


KINDS: dict[str, ComponentKind] = {
    kind.name: kind
    for kind in (
        ComponentKind(
            name="heads", example="L12H3", place="input", find=_heads,
            help="query head: its slice of the input of the attention output projection",
        ),
        ComponentKind(
            name="kv-groups", example="L12G1", place="input", find=_kv_groups,
            help="the query heads that share a key/value head",
        ),
        ComponentKind(
            name="attention", example="L12A", place="input", find=_attention,
            help="attention layer: all its query heads",
        ),
        ComponentKind(
            name="mlp", example="L12M", place="output", find=_mlp,
            help="feed-forward block: its output, or the block's where experts share the work",
        ),
        ComponentKind(
            name="layers", example="L12", place="update", find=_layers,
            help="decoder layer: what it adds to its input",
        ),
        ComponentKind(
            name="experts", example="L12E7", place="routing", find=_experts,
            help="routed expert: its weight in the router's choice",
        ),
        ComponentKind(
            name="neurons", example="L12N40", place="input", find=_neurons,
            help="feed-forward neuron: its activation before the block's last matrix",
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
    for kind in require_kinds(kinds):
        before, place = len(components), KINDS[kind].place
        for part, layer, group, width in KINDS[kind].find(structure):
            points.append(
                GatePoint(part.module, part.path, layer, place, len(components), len(group), width)
            )
            components += group
        if len(components) == before:
            raise UnsupportedModel(
                f"no {kind} were found in '{architecture}': `broca scan` lists what it has"
            )
    return ComponentSet(tuple(components)), tuple(points)


def kinds_of(components: Iterable[Component]) -> str:
    """Returns the kinds of some components, such as `heads+mlp`."""
    names = {Component.parse(kind.example).kind: name for name, kind in KINDS.items()}
    return "+".join(dict.fromkeys(names[component.kind] for component in components))
