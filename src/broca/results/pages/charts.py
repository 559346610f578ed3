"""Charts that nobody clicks, which matplotlib draws, and the matrix of colours."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import Any, Literal, Protocol

from broca.results.pages.colours import LIGHT, level
from broca.results.pages.drawing import (
    FONT,
    CellMark,
    Cells,
    Drawing,
    Drawn,
    Label,
    Mark,
    colour_legend,
    overlay,
    shortened,
    style,
    text_width,
)
from broca.results.tabular import Interval

Shape = Literal["circle", "square", "diamond", "triangle", "cross", "ring"]
SHAPES: tuple[Shape, ...] = ("circle", "square", "diamond", "triangle", "cross", "ring")
_MARKERS = dict(zip(SHAPES, "osD^xo", strict=True))
_DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)))
_ROW = 24.0
"""Height of a row in pixels."""


class Chart(Protocol):
    """A chart of a page and of a file."""

    def svg(self, *, alone: bool = False) -> str:
        """Writes the chart as an SVG element; `alone` writes out the colours, for a file."""
        ...

    def paint(self, width: float, scale: float) -> Any:
        """Makes a matplotlib figure; `width` in CSS pixels, `scale` in points per pixel."""
        ...


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
        """Makes the figure, with as many axes side by side as fit."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        charts = self.axes()
        across = max(1, min(len(charts), int(width // self.least)))
        rows = ceil(len(charts) / across) or 1
        tall = max((chart.height for _, chart in charts), default=100.0) + 24 * bool(charts[1:])
        with rc_context(style(scale)):
            inches = scale / 72
            figure = Figure(figsize=(width * inches, rows * tall * inches), layout="constrained")
            grid = figure.subplots(rows, across, squeeze=False).flatten()
            for axes, (title, chart) in zip(grid, charts, strict=False):
                axes.set_title(title, loc="left", fontweight="bold")
                chart.plot(axes, width / across, scale)
            for axes in grid[len(charts) :]:
                axes.axis("off")
        return figure


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


@dataclass(frozen=True)
class Point:
    """A value with the ends of its interval, if they are known."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, interval: Interval, *, scale: float = 1.0) -> Point:
        """Makes a point from an interval, multiplied by `scale`."""
        return cls(scale * interval.value, scale * interval.low, scale * interval.high)


@dataclass(frozen=True)
class Series:
    """Points of a series.

    Attributes:
        name: Name in the legend; an empty name is left out of the legend.
        role: Its colour.
        points: Row and point; a row may have none or several.
        shape: The symbol.
        radius: The symbol's size.
    """

    name: str
    role: str
    points: tuple[tuple[int, Point], ...]
    shape: Shape = "circle"
    radius: float = 4.8


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
        if self.joined:
            for number in range(len(self.rows)):
                values = [p.value for s in self.series for at, p in s.points if at == number]
                if len(values) > 1:
                    axes.hlines(number, min(values), max(values), LIGHT["muted"], lw=2 * scale)
        for series in self.series:
            places = [at for at, _ in series.points]
            _points(axes, series, [p for _, p in series.points], places, scale, across=True)
        names = [shortened(name, 0.4 * width) for name in self.rows]
        for label, name in zip(
            axes.set_yticks(range(len(names)), names) and axes.get_yticklabels(),
            self.rows,
            strict=True,
        ):
            label.set_fontweight("bold" if name in self.bold else "normal")
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.axvline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="x")
        axes.set_xlabel(self.axis)
        _legend(axes, [series.name for series in self.series])


@dataclass(frozen=True)
class Line:
    """A line through points of increasing `x`.

    Attributes:
        name: Name in the legend.
        x: Positions.
        points: Values there.
        role: Its colour.
        number: Position among the lines, which determines symbol and dashes.
        joined: Whether points are joined.
    """

    name: str
    x: tuple[float, ...]
    points: tuple[Point, ...]
    role: str
    number: int = 0
    joined: bool = True
    radius: float = 4.2

    @property
    def shape(self) -> Shape:
        """The symbol of its points; the ring is that of intact models.

        There are fewer symbols than colours, so that lines of the same colour have different ones.
        """
        return SHAPES[self.number % 5]


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

    lines: tuple[Line, ...]
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
            if line.joined:
                values = [point.value for point in line.points]
                dash = _DASHES[line.number % len(_DASHES)]
                axes.plot(line.x, values, color=LIGHT[line.role], lw=1.8 * scale, ls=dash)
            _points(axes, line, line.points, line.x, scale, across=False)
        if self.logarithmic:
            axes.set_xscale("log")
            for which in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
                which(lambda value, _: f"{value:,.0f}" if f"{value:.0f}"[0] in "125" else "")
        else:
            axes.xaxis.get_major_locator().set_params(
                integer=all(x == int(x) for line in self.lines for x in line.x)
            )
        if self.mark is not None:
            axes.axvline(self.mark, color=LIGHT["ink"], lw=1.2 * scale, ls=":")
        axes.axhline(0, color=LIGHT["muted"], lw=scale, zorder=0)
        axes.grid(axis="y")
        axes.set_xlabel(self.across)
        axes.set_ylabel(self.up)
        _legend(axes, [line.name for line in self.lines])


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
        axes.set_yticks(range(len(self.rows)), [shortened(row, 0.4 * width) for row in self.rows])
        axes.set_ylim(len(self.rows) - 0.5, -0.5)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(self.axis)


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


def _points(
    axes: Any,
    group: Series | Line,
    points: Sequence[Point],
    places: Sequence[float],
    scale: float,
    *,
    across: bool,
) -> None:
    """Draws points with their intervals, along the horizontal axis if `across`."""
    colour = LIGHT[group.role]
    values = [point.value for point in points]
    known = [(at, p) for at, p in zip(places, points, strict=True) if p.low is not None]
    if known:
        at, lows = [at for at, _ in known], [point.low for _, point in known]
        (axes.hlines if across else axes.vlines)(
            at, lows, [point.high for _, point in known], colour, lw=1.8 * scale
        )
    axes.plot(
        *((values, places) if across else (places, values)), ls="none", color=colour,
        marker=_MARKERS[group.shape], ms=2 * group.radius * scale, mew=2 * scale * (
            group.shape in ("ring", "cross")), label=group.name,
        mfc="none" if group.shape == "ring" else colour,
    )  # fmt: skip


def _legend(axes: Any, names: Sequence[str]) -> None:
    """Explains the symbols above the axes if there are several named ones."""
    if len([name for name in names if name]) > 1:
        axes.get_figure().legend(
            *axes.get_legend_handles_labels(), loc="outside upper left", ncols=3
        ) if len(axes.get_figure().axes) == 1 else axes.legend()


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
        longest = max((text_width(row) for row in self.rows), default=0.0)
        left = min(longest + 14, 0.34 * width)
        columns = max(1, len(self.columns))
        pitch = min(76.0, max(3.0, (width - left - 8) / columns))
        widest = max((text_width(name, 11) for name in self.columns), default=0.0)
        upright = widest > pitch - 4
        top = min(widest, 150) + 12 if upright else 22.0
        gap = 1.0 if pitch < 14 else 2.0
        marks: list[Mark] = []
        frames: list[Mark] = []
        for column in range(0, len(self.columns), max(1, ceil(13 / pitch)) if upright else 1):
            middle = left + pitch * (column + 0.5)
            shown = shortened(self.columns[column], 150 if upright else pitch, 11)
            if upright:
                marks.append(Label(middle + 4, top - 6, shown, "muted", 11, turned=True))
            else:
                marks.append(Label(middle, top - 7, shown, "muted", 11, "middle"))
        for number, row in enumerate(self.rows):
            y = top + _ROW * number
            marks.append(Label(left - 8, y + 16, shortened(row, left - 8), anchor="end"))
            cells = tuple(
                CellMark(left + pitch * column, level(value, self.span),
                     framed=(number, column) in self.framed)
                for column, value in enumerate(self.values[number])
            )  # fmt: skip
            cells_of_row = Cells(y, pitch - gap, _ROW - 2, cells)
            marks.append(cells_of_row)
            frames += overlay(cells_of_row)
            for column, text in enumerate(self.texts[number] if self.texts else ()):
                if text and text_width(text, 11) < pitch:
                    strong = abs(cells[column].step or 0) > 9
                    middle = left + pitch * (column + 0.5) - gap / 2
                    role = "paper" if strong else "ink"
                    marks.append(Label(middle, y + 15, text, role, 11, "middle"))
        bottom = top + _ROW * len(self.rows)
        unknown = any(value is None for line in self.values for value in line)
        legend, end = colour_legend(
            self.span, self.unit, left, bottom + 10, width,
            framed="needed beyond the others" if self.framed else "",
            unknown="not measured" if unknown else "", meanings=self.meanings,
        )  # fmt: skip
        return Drawing(width, end, (*marks, *frames, *legend), self.text or self.unit)
