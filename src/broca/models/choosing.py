"""Chooses which parts of a model are its components: `heads`, `mlp`, `heads+mlp`, ..."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broca.components import Component, ComponentSet
from broca.errors import BadInput, UnknownName, UnsupportedModel, nearest
from broca.models.gates import GatePoint, Place
from broca.models.neurons import neuron_blocks
from broca.models.structure import Part, Structure

Found = tuple[Part, int, Place, list[Component], int]
"""A module, its layer, where gates act on it, its components, and the width of each."""


def _heads(structure: Structure) -> Iterator[Found]:
    for one in structure.projections:
        components = [Component(one.layer, "head", index) for index in range(one.heads)]
        yield one.entrance, one.layer, "input", components, one.head_dim


def _kv_groups(structure: Structure) -> Iterator[Found]:
    for one in structure.projections:
        components = [Component(one.layer, "kv-group", index) for index in range(one.kv_heads)]
        width = one.heads // one.kv_heads * one.head_dim
        yield one.entrance, one.layer, "input", components, width


def _attention(structure: Structure) -> Iterator[Found]:
    for one in structure.projections:
        components = [Component(one.layer, "attention")]
        yield one.entrance, one.layer, "input", components, one.heads * one.head_dim


def _mlp(structure: Structure) -> Iterator[Found]:
    for part in structure.parts:
        if part.feed_forward is not None:
            yield part.feed_forward, part.layer, "output", [Component(part.layer, "mlp")], 0


def _layers(structure: Structure) -> Iterator[Found]:
    for part in structure.parts:
        yield part.whole, part.layer, "update", [Component(part.layer, "layer")], 0


def _experts(structure: Structure) -> Iterator[Found]:
    for part in structure.parts:
        if part.experts is not None:
            components = [Component(part.layer, "expert", e) for e in range(part.expert_count)]
            yield part.experts, part.layer, "routing", components, 0


def _neurons(structure: Structure) -> Iterator[Found]:
    for block in neuron_blocks(structure):
        components = [Component(block.layer, "neuron", index) for index in range(block.width)]
        yield block.part, block.layer, "input", components, 1


KINDS: dict[str, Callable[[Structure], Iterator[Found]]] = {
    "heads": _heads,
    "kv-groups": _kv_groups,
    "attention": _attention,
    "mlp": _mlp,
    "layers": _layers,
    "experts": _experts,
    "neurons": _neurons,
}
"""The kinds of `components`; several are joined by `+`."""


def choose(
    structure: Structure, wanted: str, *, architecture: str
) -> tuple[ComponentSet, tuple[GatePoint, ...]]:
    """Lists the components of the wanted kinds and where their gates act.

    Args:
        structure: What was found in the model.
        wanted: One key of `KINDS`, or several joined by `+`.
        architecture: The model's class, for messages.

    Raises:
        UnknownName: No such kind.
        BadInput: A kind is named twice.
        UnsupportedModel: The model has no such components that could be found.
    """
    kinds = [kind.strip() for kind in wanted.split("+")]
    if len(set(kinds)) != len(kinds):
        raise BadInput(f"`components` '{wanted}' names a kind twice")
    components: list[Component] = []
    points: list[GatePoint] = []
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName(
                f"components '{kind}' are unknown{nearest(kind, KINDS)}; use {', '.join(KINDS)}, "
                "or several joined by +"
            )
        before = len(components)
        for part, layer, place, found, width in KINDS[kind](structure):
            points.append(
                GatePoint(part.module, part.path, layer, place, len(components), len(found), width)
            )
            components += found
        if len(components) == before:
            raise UnsupportedModel(
                f"no {kind} were found in '{architecture}': `broca scan` lists what it has"
            )
    return ComponentSet(tuple(components)), tuple(points)
