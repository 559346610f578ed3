"""Colours by meaning, and drawings of cells: written as SVG for a page, drawn by matplotlib.

Orange and blue stay apart for readers with any common colour vision deficiency. Every colour that
carries meaning has a contrast of at least 3:1 with the page, in both schemes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

LEVELS = 16
"""Steps of a colour between none and full strength."""

_COLOURS = {
    "ink": ("#1b2430", "#e8ecf1"), "muted": ("#56616d", "#a3aebb"),
    "line": ("#d3d9e0", "#3b4653"), "paper": ("#ffffff", "#171d24"),
    "ground": ("#f4f6f8", "#0f1419"), "cell": ("#e9edf1", "#29323c"),
    "harm": ("#c24a00", "#ff8b45"), "gain": ("#1f65ad", "#6cb1f5"),
    "intact": ("#6f7b88", "#94a1af"), "series1": ("#00735a", "#3fc4a0"),
    "series2": ("#9c3f7b", "#e58bc3"), "series3": ("#7a6500", "#d9be3f"),
    "series4": ("#2b7f99", "#6cc7e0"), "series5": ("#6a4fb0", "#b19cf0"),
    "series6": ("#56616d", "#a3aebb"),
}  # fmt: skip
"""Colours on a light page and on a dark one.

`harm` is a loss: the task gets worse, or the components are ablated. `gain` is the opposite,
`intact` the intact model. `series1` and so on are categories such as methods; none of them has the
colour of a loss or a gain.
"""

LIGHT = {role: light for role, (light, _) in _COLOURS.items()}
"""Colours on a light page and on paper."""

DARK = {role: dark for role, (_, dark) in _COLOURS.items()}

SERIES = tuple(role for role in LIGHT if role.startswith("series"))
"""Roles of categories."""

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def level(value: float | None, span: float) -> int | None:
    """Returns the step of a value's colour, negative for a loss; None if the value is unknown.

    Args:
        value: The value; beyond the span it has the full colour.
        span: The size of a value with the full colour, above 0.
    """
    if value is None or value != value:
        return None
    strength = min(1.0, abs(value) / span)
    step = max(1, round(LEVELS * strength)) if strength > 0 else 0
    return -step if value < 0 else step


def step_colour(step: int) -> str:
    """Returns the colour of a step on paper, as `#rrggbb`."""
    strength = abs(step) / LEVELS
    over, under = (
        bytes.fromhex(LIGHT[role][1:]) for role in ("harm" if step < 0 else "gain", "cell")
    )
    parts = (round(strength * a + (1 - strength) * b) for a, b in zip(over, under, strict=True))
    return "#" + bytes(parts).hex()


def style_sheet() -> str:
    """Returns the colours as CSS: variables for both schemes, and the classes of marks."""

    def variables(colours: dict[str, str]) -> str:
        return "".join(f"--{role}:{colour};" for role, colour in colours.items())

    marks = "".join(
        f".f-{role}{{fill:var(--{role})}}.s-{role}{{stroke:var(--{role});fill:none}}"
        for role in LIGHT
    )
    steps = "".join(
        f".c .{letter}{step}{{fill:color-mix(in srgb,var(--{role}) {100 * step / LEVELS:g}%,"
        "var(--cell))}"
        for letter, role in (("n", "harm"), ("p", "gain"))
        for step in range(1, LEVELS + 1)
    )
    return (
        f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"@media print{{:root{{color-scheme:light;{variables(LIGHT)}}}}}"
        f"{marks}.c rect{{fill:var(--cell);width:var(--w);height:var(--h)}}{steps}"
        ".c .u{fill:url(#unknown)}"
    )


@dataclass(frozen=True)
class Label:
    """A line of text; `y` is its baseline. `turned` text reads upwards."""

    x: float
    y: float
    text: str
    role: str = "muted"
    size: float = 11.0
    anchor: Literal["start", "middle", "end"] = "start"
    turned: bool = False


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


Mark = Label | Box | Cells


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

    def svg(self, *, alone: bool = False) -> str:
        """Writes an SVG element; all text is escaped.

        Args:
            alone: Whether to write out colours, for a file or a notebook. A page uses classes of
                `style_sheet`, which follow the reader's colour scheme.
        """
        width, height = _number(self.width), _number(self.height)
        return "".join((
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(self.text)}" '
            f'font-family="{FONT}" font-size="11"><defs><pattern id="unknown" width="4" height="4" '
            'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V4" '
            f'stroke-width="1.4" {_paint("stroke", "muted", alone)}/></pattern></defs>',
            *(_written(mark, alone) for mark in self.marks),
            "</svg>",
        ))  # fmt: skip

    def figure(self, scale: float) -> Any:
        """Makes a matplotlib figure; `scale` is points per pixel."""
        from matplotlib.figure import Figure
        from matplotlib.patches import Ellipse, Rectangle

        inches = scale / 72
        figure = Figure(figsize=(self.width * inches, self.height * inches))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        for mark in self.marks:
            if isinstance(mark, Label):
                axes.text(
                    mark.x, mark.y, mark.text, fontsize=mark.size * scale, color=LIGHT[mark.role],
                    va="baseline", rotation=90 if mark.turned else 0, rotation_mode="anchor",
                    ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
                )  # fmt: skip
            elif isinstance(mark, Box):
                look: dict[str, Any] = {
                    "fill": not mark.outline, "linewidth": mark.outline * scale,
                    "edgecolor": LIGHT[mark.role], "facecolor": LIGHT[mark.role],
                }  # fmt: skip
                centre = (mark.x + mark.width / 2, mark.y + mark.height / 2)
                axes.add_patch(
                    Ellipse(centre, mark.width, mark.height, **look) if mark.round
                    else Rectangle((mark.x, mark.y), mark.width, mark.height, **look)
                )  # fmt: skip
            else:
                for cell in mark.cells:
                    look = (
                        {"fill": False, "hatch": "//////", "edgecolor": LIGHT["muted"]}
                        if cell.step is None
                        else {"facecolor": step_colour(cell.step)}
                    )
                    axes.add_patch(
                        Rectangle((cell.x, mark.y), mark.width, mark.height, linewidth=0, **look)
                    )
        return figure


def _written(mark: Mark, alone: bool) -> str:
    """Writes a mark; cells have only the attributes in which they differ."""
    if isinstance(mark, Label):
        x, y = _number(mark.x), _number(mark.y)
        turn = f' transform="rotate(-90 {x} {y})"' if mark.turned else ""
        anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
        size = "" if mark.size == 11 else f' font-size="{_number(mark.size)}"'
        return (
            f'<text x="{x}" y="{y}"{anchor}{size}{turn} {_paint("fill", mark.role, alone)}>'
            f"{escape(mark.text)}</text>"
        )
    if isinstance(mark, Box):
        sizes = " ".join(
            f'{name}="{_number(getattr(mark, name))}"' for name in ("x", "y", "width", "height")
        )
        rest = f' rx="{_number(mark.width / 2)}"' if mark.round else ""
        rest += f' stroke-width="{_number(mark.outline)}"' if mark.outline else ""
        rest += f' data-frame="{escape(mark.component)}"' if mark.component else ""
        what: Literal["fill", "stroke"] = "stroke" if mark.outline else "fill"
        return f"<rect {sizes}{rest} {_paint(what, mark.role, alone)}/>"
    width, height = _number(mark.width), _number(mark.height)
    parts = [f'<g class="c" style="--w:{width}px;--h:{height}px" '
             f'transform="translate(0,{_number(mark.y)})">']  # fmt: skip
    for cell in mark.cells:
        name = f' data-component="{escape(cell.component)}"' if cell.component else ""
        if alone:
            colour = "url(#unknown)" if cell.step is None else step_colour(cell.step)
            look = f' width="{width}" height="{height}" fill="{colour}"'
        else:
            step = "u" if cell.step is None else f"{'n' if cell.step < 0 else 'p'}{abs(cell.step)}"
            look = f' class="{step}"' if cell.step != 0 else ""
        parts.append(f'<rect{name} x="{_number(cell.x)}"{look}/>')
    return "".join((*parts, "</g>"))


def _paint(what: Literal["fill", "stroke"], role: str, alone: bool) -> str:
    if alone:
        return f'{what}="{LIGHT[role]}"' + (' fill="none"' if what == "stroke" else "")
    return f'class="{what[0]}-{role}"'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Drawn(ABC):
    """A chart of cells, which lays itself out as a drawing of a given width."""

    @abstractmethod
    def draw(self, width: float = ...) -> Drawing:
        """Lays the chart out for a width in CSS pixels."""

    def svg(self, *, alone: bool = False) -> str:
        """Writes the chart as an SVG element; `alone` writes out the colours, for a file."""
        return self.draw().svg(alone=alone)

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure; `width` in CSS pixels, `scale` in points per pixel."""
        drawing = self.draw(width)
        return drawing.figure(scale * width / drawing.width)


def text_width(text: str, size: float = 11.0) -> float:
    """Returns the approximate width of a text in the fonts of pages."""
    return 0.56 * size * len(text)


def shortened(text: str, width: float, size: float = 11.0) -> str:
    """Truncates a text to `width`."""
    room = max(4, int(width / (0.56 * size)))
    return text if len(text) <= room else text[: room - 1] + "…"


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
        steps = range(-LEVELS, LEVELS + 1, 4)
        start = left + text_width(meanings[0]) + 12
        end = start + size * len(steps)
        low = top + 46
        scale = tuple(Cell(start + size * number, step) for number, step in enumerate(steps))
        marks += [
            Label(left, top + 11, meanings[0]),
            Cells(top, size, size, scale),
            Label(end + 8, top + 11, meanings[1]),
            *(
                Label(place, top + 28, text, anchor="middle")
                for place, text in zip(
                    (start, (start + end) / 2, end), (short(-span), "0", short(span)), strict=True
                )
            ),
            Label(left, low, f"Colour: {unit}"),
        ]
        x = end + 8 + text_width(meanings[1]) + 24
    step = None if span is None else -6
    for look, words in (
        ({"step": step, "framed": True}, framed), ({"step": step, "dotted": True}, dotted),
        ({"step": None}, unknown),
    ):  # fmt: skip
        if not words:
            continue
        if x + 20 + text_width(words) > width and x > left:
            x, y = left, max(low, y) + 10
        sample = Cells(y, size, size, (Cell(x, **look),))
        marks += [sample, *sample.overlay(), Label(x + size + 6, y + 11, words)]
        x += size + 6 + text_width(words) + 20
    return marks, max(low, y + 11) + 8
