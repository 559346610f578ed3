"""Figures, and the charts in them that nobody clicks, which matplotlib draws."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from math import ceil
from pathlib import Path
from typing import Any, Literal, get_args

from markupsafe import Markup

from broca.errors import BadInput, require_known
from broca.results.base import Interval
from broca.results.files import writes
from broca.results.pages import drawing
from broca.results.pages.drawing import LEVELS, LIGHT, short, shortened, text_width
from broca.results.pages.grid import ComponentGrid

Format = Literal["pdf", "svg", "png"]
Width = Literal["column", "page"]
Value = float | Interval

INCHES: dict[Width, float] = {"column": 3.35, "page": 6.9}
"""Widths of figures in two-column papers."""

PIXELS: dict[Width, int] = {"column": 430, "page": 820}
"""Widths of layouts: text of 12 pixels becomes 6.7 or 7.3 points."""

_ROW = 24.0
"""Height of a row in pixels."""


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


class Plot(ABC):
    """A chart of matplotlib's own axes.

    Attributes:
        wide: Width on a page in pixels.
    """

    wide = 720.0

    @property
    @abstractmethod
    def height(self) -> float:
        """Height in pixels."""

    @abstractmethod
    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws into axes; `width` is theirs in pixels."""

    def svg(self, text: str, *, alone: bool = False) -> str:
        """Writes the plot with its text alternative; a point has its value as a tip.

        Its colours follow the reader's colour scheme on a page, and are written out if `alone`.
        """
        from matplotlib import rc_context

        with rc_context(style(1.0) | {"svg.fonttype": "none"}), io.StringIO() as file:
            figure = self.paint(self.wide, 1.0)
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(file, format="svg", metadata=metadata, transparent=True)
            content = file.getvalue()
        width, height = (72 * inches for inches in figure.get_size_inches())
        body = content.partition("</defs>")[2]  # without matplotlib's style sheet
        body = re.sub(r'<g id="tip (.*?)">(.*?)</g>\s*</g>', _tipped, body, flags=re.DOTALL)
        body = re.sub(r'<g id="[^"]*"', "<g", body)  # not unique on a page
        body = re.sub(r" ?font-family: [^;\"]*;?", "", body.replace("xlink:href", "href"))
        body = re.sub(r"\s*\n\s*", " ", body)
        if not alone:
            for role, colour in LIGHT.items():
                body = body.replace(colour, f"var(--{role})")
            for step in range(-LEVELS, LEVELS + 1):
                body = body.replace(drawing.step_colour(step), drawing.mixed(step))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" '
            f'aria-label="{escape(text)}" '
            f'font-family="{drawing.FONT}" stroke-linejoin="round">{body}'
        )

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure.

        Args:
            width: Width in CSS pixels.
            scale: Points per pixel.
        """
        from matplotlib import figure

        size = (width * scale / 72, self.height * scale / 72)
        painted = figure.Figure(figsize=size, layout="constrained")
        self.plot(painted.subplots(), width, scale)
        return painted


def _tipped(line: re.Match[str]) -> str:
    """Returns the points of a line with their values, which its id holds, as tips."""
    values = iter(unescape(line[1]).split("\n"))  # matplotlib has escaped them once more
    return re.sub(
        r"<use ([^>]*)/>", lambda use: f"<use {use[1]}><title>{next(values, '')}</title></use>",
        f"<g>{line[2]}</g></g>",
    )  # fmt: skip


Chart = Plot | ComponentGrid


@dataclass(frozen=True)
class Figure:
    """A chart with its name and caption, shown on a page, in a notebook or in a file.

    Attributes:
        name: Name in files and anchors, such as `components`.
        caption: Caption of one or two sentences.
        chart: The chart.
    """

    name: str
    caption: str
    chart: Chart

    def svg(self) -> str:
        """Returns the figure as an SVG element with its colours written out."""
        return self.chart.svg(self.caption, alone=True)

    def markup(self) -> Markup:
        """Returns the figure for a page, whose colours follow the reader's colour scheme."""
        return Markup(self.chart.svg(self.caption))

    def save(self, path: str | Path, *, width: Width = "page") -> Path:
        """Writes the figure for a paper, with embedded fonts; the suffix is the format.

        Args:
            path: The file, `.pdf`, `.svg` or `.png` (300 dots per inch).
            width: `column` (3.35 inches) or `page` (6.9 inches).

        Raises:
            BadInput: The format or the width is unknown, or the file cannot be written.
        """
        from matplotlib import rc_context

        path = Path(path)
        form = path.suffix.removeprefix(".")
        for name, value, known in (("width", width, PIXELS), ("format", form, get_args(Format))):
            require_known(f"`{name}`", value, known, error=BadInput)
        scale = 72 * INCHES[width] / PIXELS[width]
        date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
        with writes(f"'{path}'", advice="choose another folder"), rc_context(style(scale)):
            figure = self.chart.paint(PIXELS[width], scale)
            figure.savefig(path, format=form, metadata=date, dpi=300)
        return path

    def _repr_html_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class Series:
    """Values with the same name, colour and symbol.

    Attributes:
        name: Name in the legend; an empty name is left out of the legend.
        role: Its colour.
        points: Place and value; the place is a number of a row, or a position on a line.
        marker: The symbol, as in matplotlib; `ring` is an empty circle, that of intact models.
        radius: The symbol's size.
        joined: Whether a line joins the points.
    """

    name: str
    role: str
    points: tuple[tuple[float, Value], ...]
    marker: str = "o"
    radius: float = 4.8
    joined: bool = False

    @classmethod
    def line(cls, number: int, name: str, points: Sequence[tuple[float, Value]]) -> Series:
        """Makes the line of a number among several: lines of the same colour differ in symbol."""
        role, marker = drawing.SERIES[number % len(drawing.SERIES)], "osD^x"[number % 5]
        return cls(name, role, tuple(points), marker, 4.2, joined=True)

    def plot(self, axes: Any, scale: float, *, across: bool) -> None:
        """Draws the points with their intervals, along the horizontal axis if `across`."""
        colour = LIGHT[self.role]
        places = [place for place, _ in self.points]
        values = [v.value if isinstance(v, Interval) else v for _, v in self.points]
        known = [(place, v.low, v.high) for place, v in self.points if isinstance(v, Interval)]
        if self.joined:
            axes.plot(places, values, color=colour, lw=1.8 * scale)
        if known:
            intervals = axes.hlines if across else axes.vlines
            intervals(*zip(*known, strict=True), colour, lw=1.8 * scale)
        ring = self.marker == "ring"
        axes.plot(
            *((values, places) if across else (places, values)), ls="none", color=colour,
            marker="o" if ring else self.marker, mfc="none" if ring else colour, label=self.name,
            ms=2 * self.radius * scale, mew=2 * scale * (ring or self.marker == "x"),
            gid="tip " + "\n".join(f"{escape(self.name)} {short(v)}".strip() for v in values),
        )  # fmt: skip


@dataclass(frozen=True)
class IntervalChart(Plot):
    """Named rows, with points and intervals along a horizontal axis.

    Attributes:
        rows: Names of the rows, from top to bottom.
        series: The series of points.
        axis: Quantity of the axis, with its unit.
        joined: Whether a line joins the points of a row.
    """

    rows: tuple[str, ...]
    series: tuple[Series, ...]
    axis: str
    joined: bool = False
    wide: float = Plot.wide

    @property
    def height(self) -> float:
        """Height with the axis and the legend."""
        return _ROW * len(self.rows) + 48 + 24 * (len(self.series) > 1)

    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws names on the left, the axis below and the legend above."""
        for series in self.series:
            series.plot(axes, scale, across=True)
        if self.joined:
            points = [line.get_xydata().tolist() for line in axes.lines]
            for row in range(len(self.rows)):
                values = [value for line in points for value, place in line if place == row]
                if len(values) > 1:
                    axes.hlines(
                        row, min(values), max(values), LIGHT["muted"], lw=2 * scale, zorder=1.5
                    )
        axes.set_yticks(
            range(len(self.rows)), [shortened(row, 0.4 * width, 12) for row in self.rows]
        )
        axes.set_ylim(len(self.rows) - 0.5, -0.5)
        axes.set_xlabel(self.axis)
        axes.axvline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="x")
        _explain(axes, self.series)


@dataclass(frozen=True)
class LineChart(Plot):
    """Lines over a common axis.

    Attributes:
        lines: The lines.
        across: Quantity of the horizontal axis.
        up: Quantity of the vertical axis.
        height: Height of the whole chart in pixels.
    """

    lines: tuple[Series, ...]
    across: str
    up: str
    height: float = 330.0

    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws the legend above and both axes with round numbers."""
        for line in self.lines:
            line.plot(axes, scale, across=False)
        whole = all(x == int(x) for line in self.lines for x, _ in line.points)
        axes.xaxis.get_major_locator().set_params(integer=whole)
        axes.axhline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="y")
        axes.set_xlabel(self.across)
        axes.set_ylabel(self.up)
        _explain(axes, self.lines)


def _explain(axes: Any, series: Sequence[Series]) -> None:
    """Explains the symbols above the axes if there are several named ones."""
    if len([line for line in series if line.name]) < 2:
        return
    handles = axes.get_legend_handles_labels()
    axes.get_figure().legend(*handles, loc="outside upper left", ncols=3)


@dataclass(frozen=True)
class Matrix(Plot):
    """Rows x columns of colours.

    Attributes:
        rows: Names of the rows.
        columns: Names of the columns.
        values: Values by row and column, negative for a loss; None if unknown, which is hatched.
        span: The size of a value with the full colour.
        axis: Quantity of the values.
        texts: Texts in the cells; empty for none.
        tips: Texts that a page shows of the cells under the pointer; empty for none.
        framed: Row and column of framed cells.
        meanings: Meanings of the lower and the upper end of the colours.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    span: float
    axis: str
    texts: tuple[tuple[str, ...], ...] = ()
    framed: frozenset[tuple[int, int]] = frozenset()
    meanings: tuple[str, str] = ("worse without it", "better without it")
    tips: tuple[tuple[str, ...], ...] = ()
    wide: float = 860.0

    @property
    def height(self) -> float:
        """Height with the names of columns and the scale of colours."""
        return _ROW * len(self.rows) + 90 + min(150, max(map(text_width, self.columns), default=0))

    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws the cells, the columns' names above and the scale of colours below."""
        import numpy as np
        from matplotlib.collections import PathCollection
        from matplotlib.colors import ListedColormap, Normalize
        from matplotlib.patches import Rectangle
        from matplotlib.path import Path
        from matplotlib.transforms import Affine2D

        steps = np.array(
            [[drawing.level(v, self.span) for v in row] for row in self.values], dtype=float
        )
        colours = ListedColormap([drawing.step_colour(step) for step in range(-LEVELS, LEVELS + 1)])
        axes.patch.set(hatch="//////", edgecolor=LIGHT["muted"])
        drawn = np.unique(steps[~np.isnan(steps)])
        paths = []  # one for all cells of a colour, which keeps the page of a large model small
        for step in drawn:
            cells = (Affine2D().translate(x, y) for y, x in np.argwhere(steps == step))
            square = Path.unit_rectangle()
            paths.append(Path.make_compound_path(*(square.transformed(cell) for cell in cells)))
        mesh = PathCollection(paths, array=drawn, cmap=colours, norm=Normalize(-LEVELS, LEVELS),
                              edgecolors=LIGHT["paper"], lw=scale)  # fmt: skip
        axes.add_collection(mesh)
        axes.set(xlim=(0, len(self.columns)), ylim=(len(self.rows), 0))
        for row, column in self.framed:
            frame = Rectangle((column, row), 1, 1, fill=False, ec=LIGHT["ink"], lw=2 * scale)
            axes.add_patch(frame)
        pitch = 0.7 * width / max(1, len(self.columns))
        for row, texts in enumerate(self.texts):
            for column, text in enumerate(texts):
                if text and text_width(text) < pitch:
                    role = "paper" if abs(steps[row, column]) > 9 else "ink"
                    axes.text(column + 0.5, row + 0.5, text, color=LIGHT[role], ha="center",
                              va="center_baseline", fontsize=11 * scale)  # fmt: skip
        for row, tips in enumerate(self.tips):  # points that cannot be seen, as large as cells
            x, y = 0.48 * pitch, 0.48 * _ROW
            axes.plot(
                [column + 0.5 for column in range(len(tips))], [row + 0.5] * len(tips), ls="none",
                marker=[(-x, -y), (x, -y), (x, y), (-x, y)], ms=2 * max(x, y) * scale, alpha=0,
                zorder=4, gid="tip " + "\n".join(map(escape, tips)),
            )  # fmt: skip
        every = max(1, ceil(13 / pitch))
        names = [shortened(name, 150) for name in self.columns][::every]
        upright = max(map(text_width, names), default=0) > pitch
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(0, len(self.columns), every) + 0.5, names, rotation=90 * upright)
        axes.set_yticks(
            np.arange(len(self.rows)) + 0.5, [shortened(row, 0.3 * width, 12) for row in self.rows]
        )
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        scale_bar = axes.figure.colorbar(mesh, location="bottom", shrink=0.4, aspect=24)
        low, high = self.meanings
        labels = [f"{short(-self.span)}\n{low}", "0", f"{short(self.span)}\n{high}"]
        scale_bar.set_ticks([-LEVELS, 0, LEVELS], labels=labels)
        scale_bar.outline.set_visible(False)
        framed = "; framed: needed beyond the others" if self.framed else ""
        unknown = "; hatched: not measured" if np.isnan(steps).any() else ""
        scale_bar.set_label(f"Colour: {self.axis}{framed}{unknown}")
