"""The picture of the model: layers as rows, components as cells with the effect as colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from broca.components import NAMINGS, Component
from broca.errors import BadInput
from broca.results.pages.colours import level
from broca.results.pages.drawing import (
    CellMark,
    Cells,
    Drawing,
    Drawn,
    Label,
    Mark,
    Segment,
    colour_legend,
    overlay,
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
        by_layer: dict[int, dict[tuple[str, int], str]] = {}
        for name, part in self._drawn().items():
            by_layer.setdefault(part.layer, {})[part.kind, part.index or 0] = name
        layers = max(self.layers or 0, 1 + max(by_layer, default=0))
        counts: dict[str, int] = {}
        for parts in by_layer.values():
            for kind, index in parts:
                counts[kind] = max(counts.get(kind, 0), index + 1)
        if "neuron" in counts:
            counts["neuron"] = max(counts["neuron"], self.neurons or 0)
        kinds = [kind for kind in NAMINGS if kind in counts]
        left, top = 44.0, 40.0
        pitch, starts, right = self._columns(kinds, counts, left, width)
        tall = max(_LEAST, min(30.0, pitch if layers > 32 else max(pitch, 16.0), 620 / layers))
        marks: list[Mark] = [Label(left - 10, top - 22, "layer", "muted", 11, "end")]
        for kind in kinds:
            marks += self._heading(kind, counts[kind], starts[kind], pitch, top)
        frames: list[Mark] = []
        step = _step(13 / tall)
        for layer in range(layers):
            y = top + tall * layer
            if layer % step == 0:
                marks.append(Label(left - 10, y + tall / 2 + 4, str(layer), "muted", 11, "end"))
            if "neuron" in starts:  # the extent of the layer, even if no neuron is drawn
                end = starts["neuron"] + _STRIP
                marks.append(Segment(starts["neuron"], y + tall - 2, end, y + tall - 2, "line"))
            rows = self._row(by_layer.get(layer, {}), starts, counts, pitch, y, tall)
            marks += rows
            frames += [mark for row in rows for mark in overlay(row)]
        bottom = top + tall * layers + 12
        unknown = any(value is None for value in self.effects.values())
        measured = any(value is not None for value in self.effects.values())
        width = max(right + 6, min(width, 640.0))
        if not self.legend:
            return Drawing(max(right + 6, 200.0), bottom, (*marks, *frames), self.text)
        legend, end = colour_legend(
            self.full if measured else None, self.unit, left, bottom, width,
            framed=self.framed if self.selected else "",
            dotted="universal: most tasks need it" if self.universal else "",
            unknown="not measured" if unknown else "", meanings=self.meanings,
        )  # fmt: skip
        return Drawing(width, end, (*marks, *frames, *legend), self.text)

    def _drawn(self) -> dict[str, Component]:
        """Returns the components by name; of very many neurons, those with the largest effects."""
        parts = {name: part for name in self.effects if (part := _parsed(name)) is not None}
        neurons = [name for name, part in parts.items() if part.kind == "neuron"]
        ordered = sorted(neurons, key=lambda name: -abs(self.effects[name] or 0.0))
        for name in set(ordered[MOST_NEURONS:]) - set(self.selected):
            del parts[name]
        return parts

    def _columns(
        self, kinds: list[str], counts: dict[str, int], left: float, width: float
    ) -> tuple[float, dict[str, float], float]:
        """Returns the width of a cell, the left edges of blocks, and the last right edge."""
        gaps = 3.0 * (counts.get("head", 0) // self.group if self.group else 0)
        fixed = sum(
            24 + (_STRIP if kind == "neuron" else _SINGLE if NAMINGS[kind].single else 0)
            for kind in kinds
        )
        cells = sum(counts[kind] for kind in kinds if not NAMINGS[kind].single and kind != "neuron")
        pitch = (width - left - fixed - gaps) / cells if cells else _MOST
        pitch = max(_LEAST, min(_MOST, pitch))
        starts, x = {}, left
        for kind in kinds:
            starts[kind] = x
            if kind == "neuron":
                x += _STRIP
            elif NAMINGS[kind].single:
                x += _SINGLE
            else:
                x += pitch * counts[kind] + (gaps if kind == "head" else 0)
            x += 24
        return pitch, starts, x - 24

    def _x(self, kind: str, index: int, start: float, pitch: float, count: int) -> float:
        if kind == "neuron":
            return start + (_STRIP - 2) * index / max(1, count - 1)
        gap = 3.0 * (index // self.group) if kind == "head" and self.group else 0.0
        return start + pitch * index + gap

    def _heading(self, kind: str, count: int, start: float, pitch: float, top: float) -> list[Mark]:
        """Returns the kind's name, the numbers of its cells, and a bracket over each KV group."""
        title = NAMINGS[kind].title or NAMINGS[kind].noun
        if NAMINGS[kind].single:
            return [Label(start + _SINGLE / 2 - 2, top - 8, title, "muted", 11, "middle")]
        marks: list[Mark] = [Label(start, top - 22, title, "muted", 11)]
        if kind == "neuron":
            return [*marks, Label(start, top - 8, f"0 to {count - 1:,}", "muted", 11)]
        shown = _step((text_width(str(count), 11) + 6) / pitch)
        for index in range(0, count, shown):
            x = self._x(kind, index, start, pitch, count)
            marks.append(Label(x + pitch / 2 - 1, top - 8, str(index), "muted", 11, "middle"))
        if kind == "head" and self.group:
            marks[0] = Label(start, top - 22, f"head, in KV groups of {self.group}", "muted", 11)
            for index in range(0, count, self.group):
                first = self._x(kind, index, start, pitch, count)
                last = self._x(kind, min(index + self.group, count) - 1, start, pitch, count)
                marks.append(Segment(first, top - 4, last + pitch - 2, top - 4, "muted", 1.2))
        return marks

    def _row(
        self,
        parts: dict[tuple[str, int], str],
        starts: dict[str, float],
        counts: dict[str, int],
        pitch: float,
        y: float,
        tall: float,
    ) -> list[Cells]:
        """Returns the cells of a layer, grouped by width."""
        gap = 1.0 if min(pitch, tall) < 12 else 2.0
        rows: dict[float, list[CellMark]] = {}
        for (kind, index), name in sorted(parts.items(), key=lambda part: part[0][1]):
            wide = 2.0 if kind == "neuron" else (_SINGLE if NAMINGS[kind].single else pitch) - gap
            rows.setdefault(wide, []).append(
                CellMark(
                    self._x(kind, index, starts[kind], pitch, counts[kind]),
                    level(self.effects[name], self.full),
                    name,
                    framed=name in self.selected,
                    dotted=name in self.universal,
                )
            )
        return [Cells(y, wide, tall - gap, tuple(cells)) for wide, cells in rows.items()]


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
    """Returns the smallest of 1, 2, 5, 10, ... that is not below `least`."""
    return next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 512, 4096) if step >= least)
