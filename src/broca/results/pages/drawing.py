"""Drawings of cells: marks on a plane, written as SVG for a page and drawn by matplotlib."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from broca.results.pages.colours import LIGHT, step_colour

Anchor = Literal["start", "middle", "end"]
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


@dataclass(frozen=True)
class Frame:
    """The outline of a rectangle, `line` wide."""

    x: float
    y: float
    width: float
    height: float
    line: float


@dataclass(frozen=True)
class Segment:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    role: str
    width: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    role: str
    radius: float


@dataclass(frozen=True)
class Label:
    """A line of text; `y` is its baseline. `turned` text reads upwards."""

    x: float
    y: float
    text: str
    role: str = "ink"
    size: float = 12.0
    anchor: Anchor = "start"
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
    """A row of cells of equal size; `overlay` has their frames and dots."""

    y: float
    width: float
    height: float
    cells: tuple[CellMark, ...]


@dataclass(frozen=True)
class MarkGroup:
    """Marks that are moved together. `label` is for scripts."""

    x: float
    y: float
    marks: tuple[Mark, ...]
    label: str = ""


Mark = Frame | Segment | Dot | Label | Cells | MarkGroup


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


class Drawn(ABC):
    """A chart of cells, which lays itself out as a drawing of a given width."""

    @abstractmethod
    def draw(self, width: float = ...) -> Drawing:
        """Lays the chart out for a width in CSS pixels."""

    def svg(self, *, alone: bool = False) -> str:
        """Writes the chart as an SVG element; `alone` writes out the colours, for a file."""
        return svg(self.draw(), alone=alone)

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure; `width` in CSS pixels, `scale` in points per pixel."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        drawing = self.draw(width)
        scale *= width / drawing.width
        with rc_context(style(scale)):
            inches = scale / 72
            figure = Figure(figsize=(drawing.width * inches, drawing.height * inches))
            axes = figure.add_axes((0, 0, 1, 1))
            axes.set_xlim(0, drawing.width)
            axes.set_ylim(drawing.height, 0)
            axes.axis("off")
            _paint(axes, drawing.marks, 0.0, 0.0, scale)
        return figure


def style(scale: float) -> Any:
    """Returns matplotlib's settings, for lines and texts of `scale` points per pixel."""
    return {
        "pdf.fonttype": 42,  # TrueType, which publishers accept
        "svg.fonttype": "path",  # text as outlines: the file needs no font
        "svg.hashsalt": "broca",  # the same figure is the same file
        "font.family": "sans-serif", "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
        "font.size": 12 * scale, "axes.labelsize": 12 * scale, "axes.titlesize": 13 * scale,
        "xtick.labelsize": 11 * scale, "ytick.labelsize": 12 * scale,
        "legend.fontsize": 12 * scale, "legend.frameon": False, "legend.handletextpad": 0.3,
        "text.parse_math": False, "text.color": LIGHT["ink"], "axes.labelcolor": LIGHT["muted"],
        "xtick.color": LIGHT["muted"], "ytick.color": LIGHT["line"],
        "xtick.labelcolor": LIGHT["muted"], "ytick.labelcolor": LIGHT["ink"],
        "axes.edgecolor": LIGHT["line"], "axes.linewidth": scale, "grid.color": LIGHT["line"],
        "grid.linewidth": scale, "axes.axisbelow": True, "axes.spines.top": False,
        "axes.spines.right": False, "hatch.linewidth": 0.4,
    }  # fmt: skip


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
            f"{_colour('stroke', 'muted', alone)}/></pattern></defs>"
        )
    return "".join((*parts, *_written(drawing.marks, alone), "</svg>"))


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


def _written(marks: Sequence[Mark], alone: bool) -> Iterator[str]:
    for mark in marks:
        if isinstance(mark, MarkGroup):
            move = f'transform="translate({_number(mark.x)},{_number(mark.y)})"'
            label = f' data-group="{escape(mark.label)}"' if mark.label else ""
            yield f"<g {move}{label}>{''.join(_written(mark.marks, alone))}</g>"
        elif isinstance(mark, Cells):
            yield _cells(mark, alone)
        elif isinstance(mark, Frame):
            yield (
                f'<rect x="{_number(mark.x)}" y="{_number(mark.y)}" width="{_number(mark.width)}" '
                f'height="{_number(mark.height)}" {_colour("stroke", "ink", alone)} '
                f'stroke-width="{_number(mark.line)}"/>'
            )
        elif isinstance(mark, Segment):
            yield (
                f'<path d="M{_number(mark.x1)} {_number(mark.y1)}L{_number(mark.x2)} '
                f'{_number(mark.y2)}" {_colour("stroke", mark.role, alone)} '
                f'stroke-width="{_number(mark.width)}"/>'
            )
        elif isinstance(mark, Dot):
            yield (
                f'<circle cx="{_number(mark.x)}" cy="{_number(mark.y)}" '
                f'r="{_number(mark.radius)}" {_colour("fill", mark.role, alone)}/>'
            )
        else:
            x, y = _number(mark.x), _number(mark.y)
            turn = f' transform="rotate(-90 {x} {y})"' if mark.turned else ""
            anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
            size = "" if mark.size == 12 else f' font-size="{_number(mark.size)}"'
            yield (
                f'<text x="{x}" y="{y}"{anchor}{size}{turn} {_colour("fill", mark.role, alone)}>'
                f"{escape(mark.text)}</text>"
            )


def _cells(row: Cells, alone: bool) -> str:
    """Writes a row as a group; cells have only the attributes that differ."""
    size = f' width="{_number(row.width)}" height="{_number(row.height)}"' if alone else ""
    parts = [f'<g class="c {_class_of(row)}" transform="translate(0,{_number(row.y)})">']
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
    """Returns the frames and dots of a row's cells, which are drawn over all rows.

    A dot has a rim that is visible on any colour.
    """
    line = min(2.4, 1.0 + 0.08 * row.height)
    frames = tuple(
        Frame(cell.x - line / 2, -line / 2, row.width + line, row.height + line, line)
        for cell in row.cells
        if cell.framed
    )
    radius = max(1.2, 0.17 * min(row.width, row.height))
    dots = tuple(
        Dot(cell.x + row.width / 2, row.height / 2, role, size)
        for cell in row.cells
        if cell.dotted
        for role, size in (("paper", radius + max(0.8, 0.3 * radius)), ("ink", radius))
    )
    groups = ((frames, label), (dots, ""))
    return [MarkGroup(0, row.y, marks, name) for marks, name in groups if marks]


def _colour(what: Literal["fill", "stroke"], role: str, alone: bool) -> str:
    if alone:
        return f'{what}="{LIGHT[role]}"' + (' fill="none"' if what == "stroke" else "")
    return f'class="{what[0]}-{role}"'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _paint(axes: Any, marks: Sequence[Mark], x: float, y: float, scale: float) -> None:
    """Draws marks, moved by `(x, y)`; `scale` is points per pixel."""
    from matplotlib.patches import Circle, Rectangle

    for mark in marks:
        if isinstance(mark, MarkGroup):
            _paint(axes, mark.marks, x + mark.x, y + mark.y, scale)
        elif isinstance(mark, Cells):
            for cell in mark.cells:
                look: dict[str, Any] = (
                    {"fill": False, "hatch": "//////", "edgecolor": LIGHT["muted"]}
                    if cell.step is None
                    else {"facecolor": step_colour(cell.step)}
                )
                place = (x + cell.x, y + mark.y)
                axes.add_patch(Rectangle(place, mark.width, mark.height, linewidth=0, **look))
        elif isinstance(mark, Frame):
            axes.add_patch(Rectangle(
                (x + mark.x, y + mark.y), mark.width, mark.height, fill=False,
                edgecolor=LIGHT["ink"], linewidth=mark.line * scale,
            ))  # fmt: skip
        elif isinstance(mark, Segment):
            axes.plot(
                [x + mark.x1, x + mark.x2], [y + mark.y1, y + mark.y2], color=LIGHT[mark.role],
                linewidth=mark.width * scale,
            )  # fmt: skip
        elif isinstance(mark, Dot):
            place = (x + mark.x, y + mark.y)
            axes.add_patch(Circle(place, mark.radius, facecolor=LIGHT[mark.role], linewidth=0))
        else:
            axes.text(
                x + mark.x, y + mark.y, mark.text, fontsize=mark.size * scale,
                color=LIGHT[mark.role], va="baseline", rotation=90 if mark.turned else 0,
                ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
                rotation_mode="anchor",
            )  # fmt: skip


def short(value: float) -> str:
    """Formats a number with as few digits as distinguish it from its neighbours."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def colour_legend(
    span: float | None,
    unit: str,
    left: float,
    top: float,
    width: float,
    *,
    framed: str = "",
    dotted: str = "",
    unknown: str = "",
    meanings: tuple[str, str] = ("worse without it", "better without it"),
) -> tuple[list[Mark], float]:
    """Draws the scale of colours from loss to gain with its numbers, and the legend of marks.

    Args:
        span: The value of the full colour; None leaves the scale out.
        unit: Quantity of the values.
        left: Left edge.
        top: Top edge.
        width: Width at which lines are broken.
        framed: Meaning of a frame; empty if nothing is framed.
        dotted: Meaning of a dot; empty if nothing is dotted.
        unknown: Meaning of hatching; empty if nothing is hatched.
        meanings: Meanings of the ends of the scale.

    Returns:
        The marks, and their bottom edge.
    """
    size = 13.0
    marks: list[Mark] = []
    x, y, low = left, top, top + 11
    if span is not None:
        steps = (-16, -12, -8, -4, 0, 4, 8, 12, 16)
        at = left + text_width(meanings[0], 11) + 12
        scale = tuple(CellMark(at + size * number, step) for number, step in enumerate(steps))
        end = at + size * len(steps)
        low = top + 46
        marks += [
            Label(left, top + 11, meanings[0], "muted", 11),
            Cells(top, size, size, scale),
            Label(end + 8, top + 11, meanings[1], "muted", 11),
            Label(at, top + 28, short(-span), "muted", 11, "middle"),
            Label(at + size * len(steps) / 2, top + 28, "0", "muted", 11, "middle"),
            Label(end, top + 28, short(span), "muted", 11, "middle"),
            Label(left, low, f"Colour: {unit}", "muted", 11),
        ]
        x = end + 8 + text_width(meanings[1], 11) + 24
    step = None if span is None else -6
    keys = [(CellMark(0, step, framed=True), framed), (CellMark(0, step, dotted=True), dotted),
            (CellMark(0, None), unknown)]  # fmt: skip
    for cell, words in keys:
        if not words:
            continue
        if x + 20 + text_width(words, 11) > width and x > left:
            x, y = left, max(low, y) + 10
        sample = Cells(0, size, size, (cell,))
        marks.append(MarkGroup(x, y, (sample, *overlay(sample, label=""))))
        marks.append(Label(x + size + 6, y + 11, words, "muted", 11))
        x += size + 6 + text_width(words, 11) + 20
    return marks, max(low, y + 11) + 8
