"""The picture of the model: layers as rows, components as cells with the effect as colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from broca.components import NAMINGS, Component
from broca.errors import BadInput
from broca.results.pages.drawing import (
    Box,
    Cell,
    Cells,
    Drawing,
    Drawn,
    Label,
    Mark,
    colour_legend,
    level,
    text_width,
)

if TYPE_CHECKING:
    from broca.results.base import ModelInfo

MOST_NEURONS = 4000
"""Maximum number of drawn neurons, those with the largest effects."""

_STRIP = 560.0
"""Width of a layer's neurons."""

_LEAST, _MOST, _SINGLE = 7.0, 46.0, 72.0
"""Widths of a cell: minimum, maximum, and that of kinds of which a layer has one."""

_GROUP = 3.0
"""Width of the gap between key/value groups."""


def counted(names: Iterable[str]) -> str:
    """Returns the numbers of components by kind in words, such as `24 MLP blocks and 24 heads`."""
    components = [_parsed(name) for name in names]
    kinds = [part.kind for part in components if part is not None]
    parts = [
        f"{kinds.count(kind):,} {naming.noun}{'s' * (kinds.count(kind) != 1)}"
        for kind, naming in NAMINGS.items()
        if kind in kinds
    ]
    if not parts:
        return f"{len(components):,} components"
    return " and ".join(parts) if len(parts) < 3 else ", ".join(parts)


def noun(names: Iterable[str], *, plural: bool = True) -> str:
    """Returns the noun of the components: `heads`, or `components` for several kinds."""
    kinds = {part.kind for part in map(_parsed, names) if part is not None}
    if len(kinds) == 1:
        return NAMINGS[kinds.pop()].noun + "s" * plural
    return "components" if plural else "component"


@dataclass(frozen=True)
class ComponentGrid(Drawn):
    """The components of a model by layer.

    Attributes:
        effects: Effect of every component, negative for a loss; None if it is unknown.
        unit: Quantity of the effects, such as `effect on accuracy`.
        layers: Number of decoder layers; at least those of `effects` are drawn.
        group: Number of query heads of a key/value head; None if it is unknown or 1.
        selected: Names of framed components.
        universal: Names of components with a dot.
        framed: Meaning of the frame.
        text: The text alternative.
        span: The effect of the full colour; the largest one if None.
        neurons: Number of neurons of a layer; the largest drawn number if None.
        meanings: Meanings of the lower and the upper end of the colours.
        legend: Whether a legend of colours and marks is written below.
    """

    effects: Mapping[str, float | None]
    unit: str
    layers: int | None = None
    group: int | None = None
    selected: tuple[str, ...] = ()
    universal: tuple[str, ...] = ()
    framed: str = "selected"
    text: str = ""
    span: float | None = None
    neurons: int | None = None
    meanings: tuple[str, str] = ("worse without it", "better without it")
    legend: bool = True

    @cached_property
    def full(self) -> float:
        """The effect of the full colour."""
        return self.span or largest(self.effects.values())

    def draw(self, width: float = 900.0) -> Drawing:
        """Lays the grid out: a row for each layer, a block for each kind, and a legend below."""
        parts = self._drawn()
        left, top = 44.0, 40.0
        pitch, blocks = self._blocks(parts, left, width)
        right = max((block.right for block in blocks.values()), default=left)
        layers = max(self.layers or 0, 1 + max((p.layer for p in parts.values()), default=0))
        tall = max(_LEAST, min(30.0, pitch if layers > 32 else max(pitch, 16.0), 620 / layers))
        gap = 1.0 if min(pitch, tall) < 12 else 2.0
        cells: dict[tuple[int, float], list[Cell]] = {}
        for name, part in sorted(parts.items(), key=lambda entry: entry[1].index or 0):
            block = blocks[part.kind]
            wide = block.cell if part.kind == "neuron" else block.cell - gap
            cells.setdefault((part.layer, wide), []).append(
                Cell(block.x(part.index or 0), level(self.effects[name], self.full), name,
                     framed=name in self.selected, dotted=name in self.universal)
            )  # fmt: skip
        marks: list[Mark] = [Label(left - 10, top - 22, "layer", anchor="end")]
        marks += (mark for block in blocks.values() for mark in block.heading(top))
        step = _step(13 / tall)
        for layer in range(layers):
            y = top + tall * layer
            if layer % step == 0:
                marks.append(Label(left - 10, y + tall / 2 + 4, str(layer), anchor="end"))
            if "neuron" in blocks:  # the extent of the layer, even if no neuron is drawn
                marks.append(Box(blocks["neuron"].start, y + tall - 2.5, _STRIP, 1, "line"))
        rows = [
            Cells(top + tall * layer, wide, tall - gap, tuple(row))
            for (layer, wide), row in sorted(cells.items(), key=lambda entry: entry[0][0])
        ]
        marks += [*rows, *(mark for row in rows for mark in row.overlay())]
        bottom = top + tall * layers + 12
        if not self.legend:
            return Drawing(max(right + 6, 200.0), bottom, tuple(marks), self.text)
        known = [value is not None for value in self.effects.values()]
        width = max(right + 6, min(width, 640.0))
        legend, end = colour_legend(
            self.full if any(known) else None, self.unit, left, bottom, width,
            framed=self.framed if self.selected else "",
            dotted="universal: most tasks need it" if self.universal else "",
            unknown="" if all(known) else "not measured", meanings=self.meanings,
        )  # fmt: skip
        return Drawing(width, end, (*marks, *legend), self.text)

    def _drawn(self) -> dict[str, Component]:
        """Returns the components by name; of very many neurons, those with the largest effects."""
        parts = {name: part for name in self.effects if (part := _parsed(name)) is not None}
        neurons = [name for name, part in parts.items() if part.kind == "neuron"]
        ordered = sorted(neurons, key=lambda name: -abs(self.effects[name] or 0.0))
        for name in set(ordered[MOST_NEURONS:]) - set(self.selected):
            del parts[name]
        return parts

    def _blocks(
        self, parts: dict[str, Component], left: float, width: float
    ) -> tuple[float, dict[str, _Block]]:
        """Returns the width of a cell, and the block of each kind from left to right."""
        counts: dict[str, int] = {}
        for part in parts.values():
            counts[part.kind] = max(counts.get(part.kind, 0), 1 + (part.index or 0))
        if "neuron" in counts:
            counts["neuron"] = max(counts["neuron"], self.neurons or 0)
        fixed = {kind: _SINGLE for kind in counts if NAMINGS[kind].single}
        fixed |= {"neuron": _STRIP} if "neuron" in counts else {}
        gaps = _GROUP * (counts.get("head", 0) // self.group if self.group else 0)
        many = sum(count for kind, count in counts.items() if kind not in fixed)
        room = width - left - sum(fixed.values()) - 24 * len(counts) - gaps
        pitch = max(_LEAST, min(_MOST, room / many if many else _MOST))
        blocks: dict[str, _Block] = {}
        for kind in (kind for kind in NAMINGS if kind in counts):
            neurons = kind == "neuron"
            blocks[kind] = _Block(
                kind, left, counts[kind],
                (_STRIP - 2) / max(1, counts[kind] - 1) if neurons else fixed.get(kind, pitch),
                2.0 if neurons else fixed.get(kind, pitch), self.group if kind == "head" else None,
            )  # fmt: skip
            left = blocks[kind].right + 24
        return pitch, blocks


@dataclass(frozen=True)
class _Block:
    """The columns of a kind of components: left edge, number, distance, and width of a cell."""

    kind: str
    start: float
    count: int
    pitch: float
    cell: float
    group: int | None

    def x(self, index: int) -> float:
        return self.start + self.pitch * index + _GROUP * (index // self.group if self.group else 0)

    @property
    def right(self) -> float:
        return self.x(self.count - 1) + self.cell

    def heading(self, top: float) -> list[Mark]:
        """Returns the kind's name, the numbers of its cells, and a bracket over each KV group."""
        title = NAMINGS[self.kind].title or NAMINGS[self.kind].noun
        if NAMINGS[self.kind].single:
            return [Label(self.start + self.cell / 2 - 2, top - 8, title, anchor="middle")]
        if self.kind == "neuron":
            numbers = Label(self.start, top - 8, f"0 to {self.count - 1:,}")
            return [Label(self.start, top - 22, title), numbers]
        title = f"head, in KV groups of {self.group}" if self.group else title
        shown = _step((text_width(str(self.count)) + 6) / self.pitch)
        marks: list[Mark] = [Label(self.start, top - 22, title)]
        for index in range(0, self.count, shown):
            middle = self.x(index) + self.pitch / 2 - 1
            marks.append(Label(middle, top - 8, str(index), anchor="middle"))
        for index in range(0, self.count if self.group else 0, self.group or 1):
            end = self.x(min(index + (self.group or 1), self.count) - 1) + self.pitch - 2
            marks.append(Box(self.x(index), top - 4.6, end - self.x(index), 1.2, "muted"))
        return marks


def grid_of_set(
    model: ModelInfo,
    names: tuple[str, ...],
    *,
    unit: str,
    effects: Mapping[str, float] | None = None,
) -> ComponentGrid:
    """Returns the grid of a set among all query heads of the model.

    Args:
        model: The model, whose layers and heads are drawn if the result states them.
        names: The set, which is framed.
        unit: Quantity of the effects.
        effects: Known effects of members.
    """
    heads = all(part is not None and part.kind == "head" for part in map(_parsed, names))
    all_effects: dict[str, float | None] = {}
    if heads and model.layers and model.heads:
        all_effects = {
            f"L{layer}H{head}": None for layer in range(model.layers) for head in range(model.heads)
        }
    all_effects |= dict.fromkeys(names) | dict(effects or {})
    return ComponentGrid(
        all_effects, unit, layers=model.layers, group=group_of(model), selected=names,
        framed="in the set",
        text=f"The set {', '.join(names)} among the layers of {model.short_name}",
    )  # fmt: skip


def group_of(model: ModelInfo) -> int | None:
    """Returns the number of query heads of a key/value head; None if it is unknown, one, or all."""
    if not model.heads or not model.kv_heads or model.heads % model.kv_heads:
        return None
    size = model.heads // model.kv_heads
    return size if 1 < size < model.heads else None


def largest(values: Iterable[float | None]) -> float:
    """Returns the largest absolute value; 1 if all are zero or unknown."""
    return max((abs(value) for value in values if value is not None), default=0.0) or 1.0


def _parsed(name: str) -> Component | None:
    """Returns the component of a name; None for an invalid name in a file, which is not drawn."""
    try:
        return Component.parse(name)
    except BadInput:
        return None


def _step(least: float) -> int:
    """Returns the smallest round number that is not below `least`."""
    return next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 512, 4096) if step >= least)
