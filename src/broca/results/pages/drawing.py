"""Drawings: marks on a plane, written as SVG for a page and drawn by matplotlib for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from broca.results.pages.colours import LIGHT, step_colour

Anchor = Literal["start", "middle", "end"]
Shape = Literal["circle", "square", "diamond", "triangle", "cross", "ring"]
SHAPES: tuple[Shape, ...] = ("circle", "square", "diamond", "triangle", "cross", "ring")

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


@dataclass(frozen=True)
class Rect:
    """A rectangle; with `outline`, a line width, it is outlined instead of filled."""

    x: float
    y: float
    width: float
    height: float
    role: str
    outline: float = 0.0
    title: str = ""


@dataclass(frozen=True)
class Segment:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    role: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True)
class Polyline:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    role: str
    width: float = 1.8
    dash: str = ""


@dataclass(frozen=True)
class Symbol:
    """A point's symbol."""

    x: float
    y: float
    shape: Shape
    role: str
    radius: float = 4.5
    title: str = ""


@dataclass(frozen=True)
class Label:
    """A line of text; `y` is its baseline. `turned` text reads upwards."""

    x: float
    y: float
    text: str
    role: str = "ink"
    size: float = 12.0
    anchor: Anchor = "start"
    bold: bool = False
    turned: bool = False


@dataclass(frozen=True)
class CellMark:
    """A cell of a row of cells.

    Attributes:
        x: Left edge.
        step: Step of its colour, see `colours.level`; None if the value is unknown.
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
    """A row of cells of equal size; `overlay` has their frames and dots. `label` is for scripts."""

    y: float
    width: float
    height: float
    cells: tuple[CellMark, ...]
    label: str = ""


@dataclass(frozen=True)
class MarkGroup:
    """Marks that are moved together. `label` is for scripts."""

    x: float
    y: float
    marks: tuple[Mark, ...]
    label: str = ""


Mark = Rect | Segment | Polyline | Symbol | Label | Cells | MarkGroup


@dataclass(frozen=True)
class Drawing:
    """Marks on a plane; `y` points down and the unit is a CSS pixel.

    Attributes:
        width: Width of the drawing.
        height: Height of the drawing.
        marks: The marks, later ones over earlier ones.
        text: The text alternative.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    text: str


def svg(drawing: Drawing, *, alone: bool = False) -> str:
    """Writes a drawing as an SVG element; all text is escaped.

    Args:
        drawing: The drawing.
        alone: Whether to write out colours, for a file or a notebook. A page uses classes of
            `colours.style_sheet`, which follow the reader's colour scheme.
    """
    width, height = _number(drawing.width), _number(drawing.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(drawing.text)}" '
        f'font-family="{FONT}" font-size="12">'
    ]
    rows = [mark for mark in walk(drawing.marks) if isinstance(mark, Cells)]
    if rows:
        sizes = {_class_of(row): row for row in rows}
        parts += [
            f"<style>.{name} rect{{width:{_number(row.width)}px;"
            f"height:{_number(row.height)}px}}</style>"
            for name, row in sizes.items()
            if not alone
        ]
        parts.append(
            '<defs><pattern id="unknown" width="4" height="4" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0V4" stroke-width="1.4" '
            f"{_paint('stroke', 'muted', alone)}/></pattern></defs>"
        )
    parts += _written(drawing.marks, alone)
    parts.append("</svg>")
    return "".join(parts)


def walk(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yields all marks, including those within groups."""
    for mark in marks:
        if isinstance(mark, MarkGroup):
            yield from walk(mark.marks)
        else:
            yield mark


def text_width(text: str, size: float = 12.0) -> float:
    """Returns the approximate width of a text in the fonts of pages."""
    return 0.56 * size * len(text)


def shortened(text: str, width: float, size: float = 12.0) -> str:
    """Truncates a text to `width`."""
    room = max(4, int(width / (0.56 * size)))
    return text if len(text) <= room else text[: room - 1] + "…"


def polygon(shape: Shape, radius: float) -> tuple[tuple[float, float], ...]:
    """Returns the corners of a symbol around the origin; none for round symbols."""
    side, tall = 0.87 * radius, 1.25 * radius
    corners: dict[Shape, tuple[tuple[float, float], ...]] = {
        "square": ((-side, -side), (side, -side), (side, side), (-side, side)),
        "diamond": ((0, -tall), (tall, 0), (0, tall), (-tall, 0)),
        "triangle": ((0, -tall), (1.1 * radius, 0.8 * radius), (-1.1 * radius, 0.8 * radius)),
    }
    return corners.get(shape, ())


def _written(marks: Sequence[Mark], alone: bool) -> Iterator[str]:
    for mark in marks:
        if isinstance(mark, MarkGroup):
            move = f'transform="translate({_number(mark.x)},{_number(mark.y)})"'
            label = f' data-group="{escape(mark.label)}"' if mark.label else ""
            yield f"<g {move}{label}>{''.join(_written(mark.marks, alone))}</g>"
        elif isinstance(mark, Cells):
            yield _cells(mark, alone)
        elif isinstance(mark, Rect):
            paint = (
                f'{_paint("stroke", mark.role, alone)} stroke-width="{_number(mark.outline)}"'
                if mark.outline
                else _paint("fill", mark.role, alone)
            )
            box = _box(mark.x, mark.y, mark.width, mark.height)
            yield _titled(f"rect {box} {paint}", mark.title, "rect")
        elif isinstance(mark, Segment):
            dash = ' stroke-dasharray="4 3"' if mark.dashed else ""
            yield (
                f'<path d="M{_number(mark.x1)} {_number(mark.y1)}L{_number(mark.x2)} '
                f'{_number(mark.y2)}" {_paint("stroke", mark.role, alone)} '
                f'stroke-width="{_number(mark.width)}"{dash}/>'
            )
        elif isinstance(mark, Polyline):
            dash = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
            path = "L".join(f"{_number(x)} {_number(y)}" for x, y in mark.points)
            yield (
                f'<path d="M{path}" {_paint("stroke", mark.role, alone)} '
                f'stroke-width="{_number(mark.width)}"{dash}/>'
            )
        elif isinstance(mark, Symbol):
            yield _symbol(mark, alone)
        else:
            yield _label(mark, alone)


def _cells(row: Cells, alone: bool) -> str:
    """Writes a row as a group; cells have only the attributes that differ."""
    size = f' width="{_number(row.width)}" height="{_number(row.height)}"' if alone else ""
    label = f' data-row="{escape(row.label)}"' if row.label else ""
    parts = [f'<g class="c {_class_of(row)}" transform="translate(0,{_number(row.y)})"{label}>']
    for cell in row.cells:
        name = f' data-component="{escape(cell.component)}"' if cell.component else ""
        if alone:
            colour = "url(#unknown)" if cell.step is None else step_colour(cell.step)
            paint = f' fill="{colour}"'
        else:
            step = "u" if cell.step is None else f"{'n' if cell.step < 0 else 'p'}{abs(cell.step)}"
            paint = f' class="{step}"' if cell.step != 0 else ""
        parts.append(f'<rect{name} x="{_number(cell.x)}"{size}{paint}/>')
    return "".join((*parts, "</g>"))


def _class_of(row: Cells) -> str:
    """Returns the class with the size of a row's cells."""
    return f"c{_number(row.width)}x{_number(row.height)}".replace(".", "-")


def overlay(row: Cells, *, label: str = "frames") -> list[Mark]:
    """Returns the frames and dots of a row's cells, which are drawn over all rows."""
    frames = tuple(frame(cell, row) for cell in row.cells if cell.framed)
    dots = tuple(part for cell in row.cells if cell.dotted for part in dot(cell, row))
    groups: list[Mark] = [MarkGroup(0, row.y, frames, label)] if frames else []
    return [*groups, MarkGroup(0, row.y, dots)] if dots else groups


def frame(cell: CellMark, row: Cells) -> Rect:
    """Returns the frame around a cell of a row, in the row's own plane."""
    line = min(2.4, 1.0 + 0.08 * row.height)
    half = line / 2
    return Rect(
        cell.x - half, -half, row.width + line, row.height + line, "ink", outline=line
    )  # fmt: skip


def dot(cell: CellMark, row: Cells) -> tuple[Symbol, Symbol]:
    """Returns the dot within a cell of a row, with a rim that is visible on any colour."""
    radius = max(1.2, 0.17 * min(row.width, row.height))
    x, y = cell.x + row.width / 2, row.height / 2
    rim = Symbol(x, y, "circle", "paper", radius + max(0.8, 0.3 * radius))
    return rim, Symbol(x, y, "circle", "ink", radius)


def _symbol(mark: Symbol, alone: bool) -> str:
    x, y, radius = _number(mark.x), _number(mark.y), _number(mark.radius)
    if mark.shape in ("circle", "ring"):
        paint = _paint("fill" if mark.shape == "circle" else "stroke", mark.role, alone)
        width = "" if mark.shape == "circle" else ' stroke-width="2"'
        return _titled(
            f'circle cx="{x}" cy="{y}" r="{radius}" {paint}{width}', mark.title, "circle"
        )
    if mark.shape == "cross":
        paint = f'{_paint("stroke", mark.role, alone)} stroke-width="2"'
        path = f"M-{radius} -{radius}L{radius} {radius}M-{radius} {radius}L{radius} -{radius}"
    else:
        paint = _paint("fill", mark.role, alone)
        corners = polygon(mark.shape, mark.radius)
        path = "M" + "L".join(f"{_number(a)} {_number(b)}" for a, b in corners) + "Z"
    return _titled(f'path transform="translate({x},{y})" d="{path}" {paint}', mark.title, "path")


def _label(mark: Label, alone: bool) -> str:
    turn = f' transform="rotate(-90 {_number(mark.x)} {_number(mark.y)})"' if mark.turned else ""
    anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
    size = "" if mark.size == 12 else f' font-size="{_number(mark.size)}"'
    bold = ' font-weight="600"' if mark.bold else ""
    place = f'x="{_number(mark.x)}" y="{_number(mark.y)}"'
    paint = _paint("fill", mark.role, alone)
    return f"<text {place}{anchor}{size}{bold}{turn} {paint}>{escape(mark.text)}</text>"


def _titled(start: str, title: str, tag: str) -> str:
    return f"<{start}><title>{escape(title)}</title></{tag}>" if title else f"<{start}/>"


def _paint(what: Literal["fill", "stroke"], role: str, alone: bool) -> str:
    if alone:
        return f'{what}="{LIGHT[role]}"' + (' fill="none"' if what == "stroke" else "")
    return f'class="{what[0]}-{role}"'


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
