"""Figures, and the charts in them that nobody clicks: matplotlib's, and the matrix of colours."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from pathlib import Path
from typing import Any, Literal, get_args

from markupsafe import Markup

from broca.errors import BadInput, require_known
from broca.results.base import Interval
from broca.results.pages.drawing import (
    FONT,
    LIGHT,
    SERIES,
    Cell,
    Cells,
    Drawing,
    Drawn,
    Label,
    Mark,
    colour_legend,
    level,
    shortened,
    text_width,
)

Format = Literal["pdf", "svg", "png"]
Width = Literal["column", "page"]
Value = float | Interval

INCHES: dict[Width, float] = {"column": 3.35, "page": 6.9}
"""Widths of figures in two-column papers."""

PIXELS: dict[Width, int] = {"column": 430, "page": 820}
"""Widths of layouts: text of 12 pixels becomes 6.7 or 7.3 points."""

_DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)))
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
        text: The text alternative; by default the quantity of the axis.
        least: Minimum width of an axes in pixels; several of them stand side by side.
    """

    text: str
    axis: str = ""
    least = 720.0

    @abstractmethod
    def axes(self) -> Sequence[tuple[str, OneAxes]]:
        """Returns the charts of the plot with their titles."""

    def svg(self, *, alone: bool = False) -> str:
        """Writes the plot; on a page its colours follow the reader's colour scheme."""
        from matplotlib import rc_context

        with rc_context(style(1.0) | {"svg.fonttype": "none"}), io.StringIO() as file:
            figure = self.paint(self.least if len(self.axes()) == 1 else 860.0, 1.0)
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(file, format="svg", metadata=metadata, transparent=True)
            text = file.getvalue()
        width, height = (72 * inches for inches in figure.get_size_inches())
        body = text[text.index("</defs>") + len("</defs>") :]  # without matplotlib's style sheet
        body = re.sub(r'<g id="[^"]*"', "<g", body)  # not unique on a page
        body = re.sub(r" ?font-family: [^;\"]*;?", "", body.replace("xlink:href", "href"))
        body = re.sub(r"\s*\n\s*", " ", body)
        if not alone:
            for role, colour in LIGHT.items():
                body = body.replace(colour, f"var(--{role})")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" '
            f'aria-label="{escape(self.text or self.axis)}" '
            f'font-family="{FONT}" stroke-linejoin="round">{body}'
        )

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure, with as many axes side by side as fit.

        Args:
            width: Width in CSS pixels.
            scale: Points per pixel.
        """
        from matplotlib import figure

        charts = self.axes()
        across = max(1, min(len(charts), int(width // self.least)))
        rows = ceil(len(charts) / across) or 1
        tall = max((chart.height for _, chart in charts), default=100.0) + 24 * bool(charts[1:])
        size = (width * scale / 72, rows * tall * scale / 72)
        painted = figure.Figure(figsize=size, layout="constrained")
        grid = painted.subplots(rows, across, squeeze=False).flatten()
        for axes, (title, chart) in zip(grid, charts, strict=False):
            axes.set_title(title, loc="left", fontweight="bold")
            chart.plot(axes, width / across, scale)
        for axes in grid[len(charts) :]:
            axes.axis("off")
        return painted


Chart = Plot | Drawn


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
        return self.chart.svg(alone=True)

    def markup(self) -> Markup:
        """Returns the figure for a page, whose colours follow the reader's colour scheme."""
        return Markup(self.chart.svg())

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
        try:
            with rc_context(style(scale)):
                figure = self.chart.paint(PIXELS[width], scale)
                figure.savefig(path, format=form, metadata=date, dpi=300)
        except OSError as error:
            raise BadInput(
                f"'{path}' cannot be written ({error.strerror}): choose another folder"
            ) from error
        return path

    def _repr_html_(self) -> str:
        return self.svg()


class OneAxes(Plot):
    """A plot of a single axes."""

    @property
    @abstractmethod
    def height(self) -> float:
        """Height in pixels."""

    @abstractmethod
    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws into axes; `width` is theirs in pixels."""

    def axes(self) -> Sequence[tuple[str, OneAxes]]:
        """Returns the plot itself."""
        return (("", self),)

    def _name_rows(self, axes: Any, rows: Sequence[str], width: float) -> None:
        """Names rows on the left, the first at the top."""
        axes.set_yticks(range(len(rows)), [shortened(row, 0.4 * width, 12) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(self.axis)


@dataclass(frozen=True)
class Series:
    """Values with the same name, colour and symbol.

    Attributes:
        name: Name in the legend; an empty name is left out of the legend.
        role: Its colour.
        points: Place and value; the place is a number of a row, or a position on a line.
        marker: The symbol, as in matplotlib; `ring` is an empty circle, that of intact models.
        radius: The symbol's size.
        dash: The dashes of a line through the points; None for no line.
    """

    name: str
    role: str
    points: tuple[tuple[float, Value], ...]
    marker: str = "o"
    radius: float = 4.8
    dash: int | None = None

    @classmethod
    def line(
        cls,
        number: int,
        name: str,
        points: Sequence[tuple[float, Value]],
        role: str = "",
        *,
        joined: bool = True,
    ) -> Series:
        """Makes the line of a number among several: lines of the same colour differ in symbol."""
        return cls(
            name, role or SERIES[number % len(SERIES)], tuple(points), "osD^x"[number % 5], 4.2,
            number % len(_DASHES) if joined else None,
        )  # fmt: skip

    def plot(self, axes: Any, scale: float, *, across: bool) -> None:
        """Draws the points with their intervals, along the horizontal axis if `across`."""
        colour = LIGHT[self.role]
        places = [place for place, _ in self.points]
        values = [v.value if isinstance(v, Interval) else v for _, v in self.points]
        known = [(place, v.low, v.high) for place, v in self.points if isinstance(v, Interval)]
        if self.dash is not None:
            axes.plot(places, values, color=colour, lw=1.8 * scale, ls=_DASHES[self.dash])
        if known:
            intervals = axes.hlines if across else axes.vlines
            intervals(*zip(*known, strict=True), colour, lw=1.8 * scale)
        ring = self.marker == "ring"
        axes.plot(
            *((values, places) if across else (places, values)), ls="none", color=colour,
            marker="o" if ring else self.marker, mfc="none" if ring else colour, label=self.name,
            ms=2 * self.radius * scale, mew=2 * scale * (ring or self.marker == "x"),
        )  # fmt: skip


@dataclass(frozen=True)
class IntervalChart(OneAxes):
    """Named rows, with points and intervals along a horizontal axis.

    Attributes:
        rows: Names of the rows, from top to bottom.
        series: The series of points.
        axis: Quantity of the axis, with its unit.
        joined: Whether a line joins the points of a row.
        text: The text alternative.
        bold: Rows with bold names.
    """

    rows: tuple[str, ...]
    series: tuple[Series, ...]
    axis: str
    joined: bool = False
    text: str = ""
    bold: tuple[str, ...] = ()

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
        self._name_rows(axes, self.rows, width)
        for label, name in zip(axes.get_yticklabels(), self.rows, strict=True):
            label.set_fontweight("bold" if name in self.bold else "normal")
        axes.axvline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="x")
        _explain(axes, self.series)


@dataclass(frozen=True)
class LineChart(OneAxes):
    """Lines over a common axis.

    Attributes:
        lines: The lines.
        across: Quantity of the horizontal axis.
        up: Quantity of the vertical axis.
        logarithmic: Whether the horizontal axis is logarithmic.
        mark: A position with a dotted vertical line.
        text: The text alternative.
        height: Height of the whole chart in pixels.
    """

    lines: tuple[Series, ...]
    across: str
    up: str
    logarithmic: bool = False
    mark: float | None = None
    text: str = ""
    height: float = 330.0

    @property
    def axis(self) -> str:  # type: ignore[override]
        """Both quantities."""
        return f"{self.up} by {self.across}"

    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws the legend above and both axes with round numbers."""
        for line in self.lines:
            line.plot(axes, scale, across=False)
        if self.logarithmic:
            axes.set_xscale("log")
            for which in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
                which(lambda value, _: f"{value:,.0f}" if f"{value:.0f}"[0] in "125" else "")
        else:
            whole = all(x == int(x) for line in self.lines for x, _ in line.points)
            axes.xaxis.get_major_locator().set_params(integer=whole)
        if self.mark is not None:
            axes.axvline(self.mark, color=LIGHT["ink"], lw=1.2 * scale, ls=":")
        axes.axhline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="y")
        axes.set_xlabel(self.across)
        axes.set_ylabel(self.up)
        _explain(axes, self.lines)


@dataclass(frozen=True)
class Bars(OneAxes):
    """Horizontal bars from zero, one for each named row, for counts; `axis` is what is counted."""

    rows: tuple[str, ...]
    values: tuple[float, ...]
    axis: str
    text: str = ""

    @property
    def height(self) -> float:
        """Height with the axis."""
        return 18 * len(self.rows) + 44

    def plot(self, axes: Any, width: float, scale: float) -> None:
        """Draws the bars, the first at the top."""
        axes.barh(range(len(self.rows)), self.values, color=LIGHT["series1"])
        axes.xaxis.get_major_locator().set_params(integer=True)
        self._name_rows(axes, self.rows, width)


@dataclass(frozen=True)
class Panels(Plot):
    """Charts of the same kind side by side, each with a title."""

    titles: tuple[str, ...]
    charts: tuple[OneAxes, ...]
    text: str = ""
    least: float = 300.0

    def axes(self) -> Sequence[tuple[str, OneAxes]]:
        """Returns the charts."""
        return tuple(zip(self.titles, self.charts, strict=True))


def _explain(axes: Any, series: Sequence[Series]) -> None:
    """Explains the symbols above the axes if there are several named ones."""
    if len([line for line in series if line.name]) < 2:
        return
    figure = axes.get_figure()
    if len(figure.axes) == 1:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    else:
        axes.legend()


@dataclass(frozen=True)
class Matrix(Drawn):
    """Rows x columns of colours.

    Attributes:
        rows: Names of the rows.
        columns: Names of the columns.
        values: Values by row and column, negative for a loss; None if unknown.
        span: The size of a value with the full colour.
        unit: Quantity of the values.
        texts: Texts in the cells; empty for none.
        framed: Row and column of framed cells.
        text: The text alternative.
        meanings: Meanings of the lower and the upper end of the colours.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    span: float
    unit: str
    texts: tuple[tuple[str, ...], ...] = ()
    framed: frozenset[tuple[int, int]] = frozenset()
    text: str = ""
    meanings: tuple[str, str] = ("worse without it", "better without it")

    def draw(self, width: float = 860.0) -> Drawing:
        """Lays the matrix out; column names are vertical if they do not fit side by side."""
        longest = max((text_width(row, 12) for row in self.rows), default=0.0)
        left = min(longest + 14, 0.34 * width)
        pitch = min(76.0, max(3.0, (width - left - 8) / max(1, len(self.columns))))
        widest = max(map(text_width, self.columns), default=0.0)
        upright = widest > pitch - 4
        top = min(widest, 150) + 12 if upright else 22.0
        gap = 1.0 if pitch < 14 else 2.0
        marks: list[Mark] = []
        frames: list[Mark] = []
        for column in range(0, len(self.columns), max(1, ceil(13 / pitch)) if upright else 1):
            middle = left + pitch * (column + 0.5)
            shown = shortened(self.columns[column], 150 if upright else pitch)
            marks.append(
                Label(middle + 4, top - 6, shown, turned=True)
                if upright
                else Label(middle, top - 7, shown, anchor="middle")
            )
        for number, row in enumerate(self.rows):
            y = top + _ROW * number
            name = shortened(row, left - 8, 12)
            cells = tuple(
                Cell(left + pitch * column, level(value, self.span),
                     framed=(number, column) in self.framed)
                for column, value in enumerate(self.values[number])
            )  # fmt: skip
            line = Cells(y, pitch - gap, _ROW - 2, cells)
            marks += [Label(left - 8, y + 16, name, "ink", 12, "end"), line]
            frames += line.overlay()
            for cell, text in zip(cells, self.texts[number] if self.texts else (), strict=False):
                if text and text_width(text) < pitch:
                    role = "paper" if abs(cell.step or 0) > 9 else "ink"
                    middle = cell.x + (pitch - gap) / 2
                    marks.append(Label(middle, y + 15, text, role, anchor="middle"))
        unknown = any(value is None for line in self.values for value in line)
        legend, end = colour_legend(
            self.span, self.unit, left, top + _ROW * len(self.rows) + 10, width,
            framed="needed beyond the others" if self.framed else "",
            unknown="not measured" if unknown else "", meanings=self.meanings,
        )  # fmt: skip
        return Drawing(width, end, (*marks, *frames, *legend), self.text or self.unit)
