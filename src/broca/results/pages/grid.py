"""The picture of the model: layers as rows, components as cells with the effect as colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from broca.components import NAMINGS, Component
from broca.errors import BadInput
from broca.results.pages.drawing import (
    LEVELS,
    LIGHT,
    level,
    short,
    shortened,
    step_colour,
    text_width,
)
from broca.results.pages.template import filled

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
class Label:
    """A line of text; `y` is its baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True)
class Box:
    """A rectangle or, if it is `round`, a circle; only its outline if this has a width.

    Attributes:
        component: Name of the component that it frames; empty for none.
    """

    x: float
    y: float
    width: float
    height: float
    role: str
    outline: float = 0.0
    round: bool = False
    component: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a row of cells.

    Attributes:
        x: Left edge.
        step: Step of its colour, see `level`; None if the value is unknown.
        component: Name of its component; empty for none.
        framed: Whether it has a frame.
        dotted: Whether it has a dot.
    """

    x: float
    step: int | None
    component: str = ""
    framed: bool = False
    dotted: bool = False


@dataclass(frozen=True)
class Cells:
    """A row of cells of equal size."""

    y: float
    width: float
    height: float
    cells: tuple[Cell, ...]

    def overlay(self) -> list[Box]:
        """Returns frames and dots, which are drawn over all rows; a dot has a visible rim."""
        line = min(2.4, 1.0 + 0.08 * self.height)
        frames = [
            Box(cell.x - line / 2, self.y - line / 2, self.width + line, self.height + line, "ink",
                line, component=cell.component)
            for cell in self.cells if cell.framed
        ]  # fmt: skip
        radius = max(1.2, 0.17 * min(self.width, self.height))
        dots = [
            Box(cell.x + self.width / 2 - size, self.y + self.height / 2 - size, 2 * size, 2 * size,
                role, round=True)
            for cell in self.cells if cell.dotted
            for role, size in (("paper", radius + max(0.8, 0.3 * radius)), ("ink", radius))
        ]  # fmt: skip
        return frames + dots


@dataclass
class Drawing:
    """Marks on a plane; `y` points down and the unit is a CSS pixel.

    Attributes:
        width: Width of the drawing.
        height: Height of the drawing.
        boxes: Rectangles below the cells.
        rows: Rows of cells; their frames and dots are drawn over them.
        labels: Texts.
    """

    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    rows: list[Cells] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    @property
    def overlay(self) -> list[Box]:
        """The frames and dots of all rows."""
        return [box for row in self.rows for box in row.overlay()]


@dataclass(frozen=True)
class ComponentGrid:
    """The components of a model by layer.

    Attributes:
        effects: Effect of every component, negative for a loss; None if it is unknown.
        unit: Quantity of the effects, such as `effect on accuracy`.
        model: The model, whose layers, key/value groups and neurons are drawn if it is known; at
            least those of `effects` are drawn.
        selected: Names of framed components.
        universal: Names of components with a dot.
        framed: Meaning of the frame.
        span: The effect of the full colour; the largest one if None.
        meanings: Meanings of the lower and the upper end of the colours.
        legend: Whether a legend of colours and marks is written below.
        stands_out: Whether framed components have the full colour and all others at most half of
            it, so that none looks more important than those that a claim names.
    """

    effects: Mapping[str, float | None]
    unit: str
    model: ModelInfo | None = None
    selected: tuple[str, ...] = ()
    universal: tuple[str, ...] = ()
    framed: str = "selected"
    span: float | None = None
    meanings: tuple[str, str] = ("worse without it", "better without it")
    legend: bool = True
    stands_out: bool = False

    @cached_property
    def full(self) -> float:
        """The effect of the full colour."""
        sizes = (abs(value) for value in self.effects.values() if value is not None)
        return self.span or max(sizes, default=0.0) or 1.0

    @cached_property
    def group(self) -> int | None:
        """Number of query heads of a key/value head; None if it is unknown, one, or all."""
        heads, kv_heads = self.model and self.model.heads, self.model and self.model.kv_heads
        if not heads or not kv_heads or heads % kv_heads or not 1 < kv_heads < heads:
            return None
        return heads // kv_heads

    def svg(self, text: str, *, alone: bool = False) -> str:
        """Writes an SVG element; all text is escaped.

        Args:
            text: The text alternative, to which the numbers and the selection are added.
            alone: Whether to write out colours, for a file or a notebook. A page uses classes of
                `colours.css.j2`, which follow the reader's colour scheme.
        """
        selected = f"; {self.framed}: {', '.join(self.selected)}" if self.selected else ""
        text = f"{text} {counted(self.effects)} by layer{selected}"
        return filled("grid", drawing=self.draw(), text=text, alone=alone)

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure; `width` in CSS pixels, `scale` in points per pixel."""
        from matplotlib.figure import Figure
        from matplotlib.patches import Ellipse, Rectangle

        drawing = self.draw(width)
        inches = scale * width / drawing.width / 72
        figure = Figure(figsize=(drawing.width * inches, drawing.height * inches))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
        axes.axis("off")
        for row in drawing.rows:
            for cell in row.cells:
                look: dict[str, Any] = {"facecolor": step_colour(cell.step or 0)}
                if cell.step is None:
                    look = {"fill": False, "hatch": "//////", "edgecolor": LIGHT["muted"]}
                axes.add_patch(Rectangle((cell.x, row.y), row.width, row.height, lw=0, **look))
        for box in drawing.boxes + drawing.overlay:
            sizes = box.width, box.height
            patch = (
                Ellipse((box.x + box.width / 2, box.y + box.height / 2), *sizes)
                if box.round
                else Rectangle((box.x, box.y), *sizes)
            )
            patch.set(color=LIGHT[box.role], fill=not box.outline, lw=72 * inches * box.outline)
            axes.add_patch(patch)
        for label in drawing.labels:
            place = {"start": "left", "middle": "center", "end": "right"}[label.anchor]
            axes.text(label.x, label.y, label.text, fontsize=11 * 72 * inches, ha=place,
                      va="baseline", color=LIGHT["muted"])  # fmt: skip
        return figure

    def draw(self, width: float = 900.0) -> Drawing:
        """Lays the grid out: a row for each layer, a block for each kind, and a legend below."""
        parts = self._drawn()
        left, top = 44.0, 40.0
        pitch, blocks = self._blocks(parts, left, width)
        right = max((block.right for block in blocks.values()), default=left)
        known = (self.model.layers if self.model else None) or 0
        layers = max(known, 1 + max((part.layer for part in parts.values()), default=0))
        tall = max(_LEAST, min(30.0, pitch if layers > 32 else max(pitch, 16.0), 620 / layers))
        gap = 1.0 if min(pitch, tall) < 12 else 2.0
        drawing = Drawing(max(right + 6, 200.0), top + tall * layers + 12)
        drawing.labels.append(Label(left - 10, top - 22, "layer", "end"))
        for block in blocks.values():
            block.head(drawing, top)
        cells: dict[tuple[int, float], list[Cell]] = {}
        for name, part in sorted(parts.items(), key=lambda entry: entry[1].index or 0):
            block = blocks[part.kind]
            wide = block.cell if part.kind == "neuron" else block.cell - gap
            cells.setdefault((part.layer, wide), []).append(
                Cell(block.x(part.index or 0), self._step_of(name), name,
                     framed=name in self.selected, dotted=name in self.universal)
            )  # fmt: skip
        for (layer, wide), row in sorted(cells.items(), key=lambda entry: entry[0][0]):
            drawing.rows.append(Cells(top + tall * layer, wide, tall - gap, tuple(row)))
        for layer in range(0, layers, _step(13 / tall)):
            drawing.labels.append(
                Label(left - 10, top + tall * (layer + 0.5) + 4, str(layer), "end")
            )
        if "neuron" in blocks:  # the extent of the layer, even if no neuron is drawn
            start = blocks["neuron"].start
            drawing.boxes += [
                Box(start, top + tall * (layer + 1) - 2.5, _STRIP, 1, "line")
                for layer in range(layers)
            ]
        if self.legend:
            words = max(
                map(text_width, (f"Colour: {self.unit}", "".join(self.meanings) + 24 * " "))
            )
            drawing.width = max(right + 6, min(width, 640.0, left + words))
            self._explain(drawing, left)
        return drawing

    def _step_of(self, name: str) -> int | None:
        """Returns the step of a component's colour."""
        step = level(self.effects[name], self.full)
        if step is None or not self.stands_out or not self.selected:
            return step
        return -LEVELS if name in self.selected else step // 2 if step > 0 else -(-step // 2)

    def _explain(self, drawing: Drawing, left: float) -> None:
        """Draws the scale of colours with its numbers, and the legend of marks, at the bottom."""
        size, top, labels = 13.0, drawing.height, drawing.labels
        known = [value is not None for value in self.effects.values()]
        if any(known):
            steps = range(-LEVELS, LEVELS + 1, 4)
            start = left + text_width(self.meanings[0]) + 12
            end = start + size * len(steps)
            cells = (Cell(start + size * number, step) for number, step in enumerate(steps))
            drawing.rows.append(Cells(top, size, size, tuple(cells)))
            labels.append(Label(left, top + 11, self.meanings[0]))
            labels.append(Label(end + 8, top + 11, self.meanings[1]))
            for number, place in ((-self.full, start), (0.0, (start + end) / 2), (self.full, end)):
                labels.append(Label(place, top + 28, short(number), "middle"))
            says = shortened(f"Colour: {self.unit}", drawing.width - left + 1)
            labels.append(Label(left, top + 46, says))
            top += 58
        step = -6 if any(known) else None
        for sample, words in (
            (Cell(left, step, framed=True), self.framed if self.selected else ""),
            (Cell(left, step, dotted=True), self.universal and "universal: most tasks need it"),
            (Cell(left, None), "" if all(known) else "not measured"),
        ):
            if words:
                drawing.rows.append(Cells(top, size, size, (sample,)))
                labels.append(Label(left + size + 6, top + 11, words))
                top += size + 8
        drawing.height = top + 4

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
        known = {}
        if self.model:
            neurons = (self.model.neurons or 0) // (self.model.layers or 1)
            known = {"head": self.model.heads or 0, "neuron": neurons}
        counts |= {kind: max(count, known.get(kind, 0)) for kind, count in counts.items()}
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

    def head(self, drawing: Drawing, top: float) -> None:
        """Draws the kind's name, the numbers of its cells, and a bracket over each KV group."""
        labels, title = drawing.labels, NAMINGS[self.kind].title or NAMINGS[self.kind].noun
        if NAMINGS[self.kind].single:
            labels.append(Label(self.start + self.cell / 2 - 2, top - 8, title, "middle"))
            return
        title = f"head, in KV groups of {self.group}" if self.group else title
        labels.append(Label(self.start, top - 22, title))
        if self.kind == "neuron":
            labels.append(Label(self.start, top - 8, f"0 to {self.count - 1:,}"))
            return
        for index in range(0, self.count, _step((text_width(str(self.count)) + 6) / self.pitch)):
            middle = self.x(index) + self.pitch / 2 - 1
            labels.append(Label(middle, top - 8, str(index), "middle"))
        for index in range(0, self.count if self.group else 0, self.group or 1):
            end = self.x(min(index + (self.group or 1), self.count) - 1) + self.pitch - 2
            drawing.boxes.append(Box(self.x(index), top - 4.6, end - self.x(index), 1.2, "muted"))


def _parsed(name: str) -> Component | None:
    """Returns the component of a name; None for an invalid name in a file, which is not drawn."""
    try:
        return Component.parse(name)
    except BadInput:
        return None


def _step(least: float) -> int:
    """Returns the smallest round number that is not below `least`."""
    return next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 512, 4096) if step >= least)
