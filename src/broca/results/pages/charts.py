"""Charts: data classes that lay themselves out as drawings of a given width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Protocol

from broca.results.pages.colours import level
from broca.results.pages.drawing import (
    SHAPES,
    CellMark,
    Cells,
    Drawing,
    Label,
    Mark,
    MarkGroup,
    Polyline,
    Rect,
    Segment,
    Shape,
    Symbol,
    overlay,
    shortened,
    text_width,
)
from broca.results.tabular import Interval

_DASHES = ("", "7 3", "2 3", "8 3 2 3")
_SYMBOLS = SHAPES[:5]
"""Symbols of lines, without the ring, which stands for intact models; fewer than the colours, so
that lines of the same colour have different symbols."""

_ROW = 24.0


class Chart(Protocol):
    """A chart that can be drawn at a width."""

    def draw(self, width: float = 720.0) -> Drawing:
        """Lays the chart out for a width in CSS pixels."""
        ...


@dataclass(frozen=True)
class Point:
    """A value with the ends of its interval, if they are known."""

    value: float
    low: float | None = None
    high: float | None = None
    title: str = ""

    @classmethod
    def of(cls, interval: Interval, *, scale: float = 1.0, title: str = "") -> Point:
        """Makes a point from an interval, multiplied by `scale`."""
        return cls(
            scale * interval.value, scale * interval.low, scale * interval.high, title
        )  # fmt: skip

    @property
    def ends(self) -> tuple[float, ...]:
        """The value and the ends."""
        return tuple(end for end in (self.value, self.low, self.high) if end is not None)


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
class IntervalChart:
    """Named rows, with points and intervals along a horizontal axis.

    Attributes:
        rows: Names of the rows, from top to bottom.
        series: The series of points.
        axis: Quantity of the axis, with its unit.
        joined: Whether a line joins the points of a row.
        stacked: Whether each series has its own line within a row.
        text: The text alternative.
        bold: Rows with bold names.
    """

    rows: tuple[str, ...]
    series: tuple[Series, ...]
    axis: str
    joined: bool = False
    stacked: bool = False
    text: str = ""
    bold: tuple[str, ...] = ()

    def draw(self, width: float = 720.0) -> Drawing:
        """Lays the chart out: names on the left, the axis below, the legend above."""
        sizes = {row: 13.6 if row in self.bold else 12.0 for row in self.rows}  # bold is wider
        longest = max((text_width(row, size) for row, size in sizes.items()), default=0.0)
        left = min(max(60.0, longest + 16), 0.42 * width)
        right = width - 18
        lanes = len(self.series) if self.stacked else 1
        tall = max(_ROW, 12.0 * lanes + 8)
        legend, top = _legend([(s.name, s.role, s.shape) for s in self.series], left, right)
        bottom = top + tall * len(self.rows)
        values = [end for series in self.series for _, point in series.points for end in point.ends]
        low, high, marks_at = _axis([*values, 0.0])

        def place(value: float) -> float:
            return left + (right - left) * (value - low) / (high - low)

        marks: list[Mark] = [*legend]
        marks += _horizontal_axis(marks_at, place, top, bottom, self.axis, (left, right))
        for number, row in enumerate(self.rows):
            middle = top + tall * (number + 0.5)
            shown = shortened(row, left - 14, sizes[row])
            marks.append(Label(left - 10, middle + 4, shown, anchor="end", bold=row in self.bold))
            points = [(lane, p) for lane, s in enumerate(self.series) for at, p in s.points
                      if at == number]  # fmt: skip
            if self.joined and len(points) > 1:
                ends = sorted(place(point.value) for _, point in points)
                marks.append(Segment(ends[0], middle, ends[-1], middle, "muted", 2))
            for lane, point in points:
                offset = 12.0 * (lane - (lanes - 1) / 2) if self.stacked else 0.0
                series = self.series[lane]
                marks += _point(point, series, place, middle + offset)
        return Drawing(width, bottom + 40, tuple(marks), self.text or self.axis)


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

    @property
    def shape(self) -> Shape:
        """The symbol of its points."""
        return _SYMBOLS[self.number % len(_SYMBOLS)]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis.

    Attributes:
        lines: The lines.
        across: Quantity of the horizontal axis.
        up: Quantity of the vertical axis.
        logarithmic: Whether the horizontal axis is logarithmic.
        mark: A position with a dotted vertical line.
        text: The text alternative.
        height: Height of the plane.
        legend: Whether the symbols are explained above the plane.
    """

    lines: tuple[Line, ...]
    across: str
    up: str
    logarithmic: bool = False
    mark: float | None = None
    text: str = ""
    height: float = 260.0
    legend: bool = True

    def draw(self, width: float = 720.0) -> Drawing:
        """Lays the chart out: the legend above, both axes with round numbers."""
        left, right = 62.0, width - 16
        names = [(line.name, line.role, line.shape) for line in self.lines]
        legend, top = _legend(names if self.legend else [], 8.0, right)
        top += 6
        bottom = top + self.height
        low, high, marks_up = _axis(
            [0.0, *(end for line in self.lines for point in line.points for end in point.ends)]
        )
        values = [x for line in self.lines for x in line.x]
        start, end, marks_across = (
            logarithmic_axis(values) if self.logarithmic else _axis(values or [0.0], tight=True)
        )

        def along(x: float) -> float:
            share = (log10(x) - log10(start)) / (log10(end) - log10(start)) if (
                self.logarithmic) else (x - start) / (end - start)  # fmt: skip
            return left + 8 + (right - left - 16) * share

        def height(value: float) -> float:
            return bottom - (bottom - top) * (value - low) / (high - low)

        marks: list[Mark] = [*legend]
        for value, text in marks_up:
            y = height(value)
            marks.append(Segment(left, y, right, y, "muted" if value == 0 else "line"))
            marks.append(Label(left - 8, y + 4, text, "muted", anchor="end", size=11))
        marks += _horizontal_axis(
            marks_across, along, top, bottom, self.across, (left, right), lines=False
        )
        marks.append(Label(14, (top + bottom) / 2, self.up, "muted", anchor="middle", turned=True))
        if self.mark is not None:
            at = along(self.mark)
            marks.append(Segment(at, top, at, bottom, "ink", 1.2, dashed=True))
        for line in self.lines:
            marks += self._line(line, along, height)
        return Drawing(width, bottom + 40, tuple(marks), self.text or f"{self.up} by {self.across}")

    @staticmethod
    def _line(line: Line, along: Place, height: Place) -> list[Mark]:
        marks: list[Mark] = []
        if line.joined and len(line.x) > 1:
            path = tuple(
                (along(x), height(p.value)) for x, p in zip(line.x, line.points, strict=True)
            )
            marks.append(Polyline(path, line.role, dash=_DASHES[line.number % len(_DASHES)]))
        for x, point in zip(line.x, line.points, strict=True):
            at = along(x)
            if point.low is not None and point.high is not None:
                marks.append(Segment(at, height(point.low), at, height(point.high), line.role, 1.4))
            title = point.title or f"{line.name}: {short(point.value)}"
            marks.append(Symbol(at, height(point.value), line.shape, line.role, 4.2, title))
        return marks


@dataclass(frozen=True)
class Matrix:
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
        tall = 24.0
        gap = 1.0 if pitch < 14 else 2.0
        step = max(1, ceil(13 / pitch)) if upright else 1
        marks: list[Mark] = []
        frames: list[Mark] = []
        for column, name in enumerate(self.columns):
            middle = left + pitch * (column + 0.5)
            if column % step:
                continue
            shown = shortened(name, 150 if upright else pitch, 11)
            if upright:
                marks.append(Label(middle + 4, top - 6, shown, "muted", 11, turned=True))
            else:
                marks.append(Label(middle, top - 7, shown, "muted", 11, "middle"))
        for number, row in enumerate(self.rows):
            y = top + tall * number
            marks.append(Label(left - 8, y + 16, shortened(row, left - 8), anchor="end"))
            cells = tuple(
                CellMark(left + pitch * column, level(value, self.span),
                     framed=(number, column) in self.framed)
                for column, value in enumerate(self.values[number])
            )  # fmt: skip
            cells_of_row = Cells(y, pitch - gap, tall - 2, cells, label=row)
            marks.append(cells_of_row)
            frames += overlay(cells_of_row)
            for column, text in enumerate(self.texts[number] if self.texts else ()):
                if text and text_width(text, 11) < pitch:
                    strong = abs(cells[column].step or 0) > 9
                    middle = left + pitch * (column + 0.5) - gap / 2
                    role = "paper" if strong else "ink"
                    marks.append(Label(middle, y + 15, text, role, 11, "middle"))
        bottom = top + tall * len(self.rows)
        unknown = any(value is None for line in self.values for value in line)
        legend, end = colour_legend(
            self.span, self.unit, left, bottom + 10, width,
            framed="needed beyond the others" if self.framed else "",
            unknown="not measured" if unknown else "", meanings=self.meanings,
        )  # fmt: skip
        return Drawing(width, end, (*marks, *frames, *legend), self.text or self.unit)


@dataclass(frozen=True)
class Panels:
    """Charts of the same kind side by side, each with a title."""

    titles: tuple[str, ...]
    charts: tuple[IntervalChart | LineChart, ...]
    text: str = ""
    least: float = 300.0

    def draw(self, width: float = 860.0) -> Drawing:
        """Lays the panels out in rows, with as many side by side as fit."""
        across = max(1, min(len(self.charts), int(width // self.least)))
        pitch = width / across
        marks: list[Mark] = []
        y = 0.0
        for first in range(0, len(self.charts), across):
            drawn = [chart.draw(pitch - 10) for chart in self.charts[first : first + across]]
            for number, drawing in enumerate(drawn):
                title = shortened(self.titles[first + number], pitch - 10, 13)
                marks.append(Label(pitch * number + 6, y + 14, title, size=13, bold=True))
                marks.append(MarkGroup(pitch * number, y + 20, drawing.marks))
            y += 30 + max(drawing.height for drawing in drawn)
        return Drawing(width, y, tuple(marks), self.text)


@dataclass(frozen=True)
class Bars:
    """Horizontal bars from zero, one for each row, for counts.

    Attributes:
        rows: Names of the rows.
        values: Their values.
        axis: What the axis measures.
        role: The colour.
        text: The text alternative.
    """

    rows: tuple[str, ...]
    values: tuple[float, ...]
    axis: str
    role: str = "series1"
    text: str = ""

    def draw(self, width: float = 720.0) -> Drawing:
        """Lays the bars out: names on the left, the axis below."""
        left = min(max(40.0, max(map(text_width, self.rows), default=0.0) + 16), 0.42 * width)
        right = width - 40
        tall = 20.0
        bottom = 6 + tall * len(self.rows)
        low, high, marks_at = _axis([0.0, *self.values])

        def place(value: float) -> float:
            return left + (right - left) * (value - low) / (high - low)

        marks: list[Mark] = _horizontal_axis(marks_at, place, 6, bottom, self.axis, (left, right))
        for number, (row, value) in enumerate(zip(self.rows, self.values, strict=True)):
            y = 6 + tall * number
            marks.append(Label(left - 10, y + 14, shortened(row, left - 14), anchor="end"))
            if value:
                marks.append(Rect(left, y + 3, place(value) - left, tall - 6, self.role,
                                  title=f"{row}: {short(value)}"))  # fmt: skip
        return Drawing(width, bottom + 40, tuple(marks), self.text or self.axis)


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


class Place(Protocol):
    """Maps a value to a position on an axis."""

    def __call__(self, value: float, /) -> float:
        """Returns the position in pixels."""
        ...


def _point(point: Point, series: Series, place: Place, y: float) -> list[Mark]:
    marks: list[Mark] = []
    if point.low is not None and point.high is not None:
        low, high = place(point.low), place(point.high)
        marks.append(Segment(low, y, high, y, series.role, 1.8))
        marks += [Segment(end, y - 3.5, end, y + 3.5, series.role, 1.8) for end in (low, high)]
    title = point.title or f"{series.name}: {short(point.value)}".removeprefix(": ")
    marks.append(Symbol(place(point.value), y, series.shape, series.role, series.radius, title))
    return marks


def _legend(
    names: Sequence[tuple[str, str, Shape]], left: float, right: float
) -> tuple[list[Mark], float]:
    """Returns symbols with names in lines, and the top of the plane below."""
    named = [entry for entry in names if entry[0]]
    if len(named) < 2:
        return [], 8.0
    marks: list[Mark] = []
    x, y = left, 14.0
    for name, role, shape in named:
        if x > left and x + 16 + text_width(name) > right:
            x, y = left, y + 18
        marks.append(Symbol(x + 5, y - 4, shape, role))
        marks.append(Label(x + 15, y, name))
        x += 15 + text_width(name) + 20
    return marks, y + 14


def _horizontal_axis(
    marks_at: Sequence[tuple[float, str]],
    place: Place,
    top: float,
    bottom: float,
    name: str,
    ends: tuple[float, float],
    *,
    lines: bool = True,
) -> list[Mark]:
    marks: list[Mark] = []
    last = -1e9
    for value, text in marks_at:
        x = place(value)
        marks.append(
            Segment(x, top, x, bottom, "muted" if value == 0 else "line")
            if lines
            else Segment(x, bottom, x, bottom + 4, "muted")
        )
        if x - text_width(text, 11) / 2 > last + 6:
            marks.append(Label(x, bottom + 16, text, "muted", 11, "middle"))
            last = x + text_width(text, 11) / 2
    marks.append(Label((ends[0] + ends[1]) / 2, bottom + 33, name, "muted", 12, "middle"))
    return marks


def _axis(
    values: Sequence[float], *, tight: bool = False
) -> tuple[float, float, list[tuple[float, str]]]:
    """Returns the ends of an axis around values, and its round numbers with their texts.

    A tight axis ends at the values themselves.
    """
    finite = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    if low == high:
        high = low + 1.0
    raw = (high - low) / 5
    decade = 10.0 ** floor(log10(raw))
    step = next(part * decade for part in (1, 2, 5, 10) if part * decade >= raw * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    digits = max(0, -floor(log10(step) + 1e-9))
    numbers = [(number * step, f"{number * step:,.{digits}f}".replace("-", "−"))
               for number in range(first, last + 1)]  # fmt: skip
    if tight:
        return low, high, [entry for entry in numbers if low <= entry[0] <= high]
    return first * step, last * step, numbers


def logarithmic_axis(
    values: Sequence[float],
) -> tuple[float, float, list[tuple[float, str]]]:
    """Returns the ends of a logarithmic axis around positive values, and its round numbers."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    numbers = [part * 10.0**decade for decade in decades for part in (1, 2, 5)]
    start, end = low / 1.3, high * 1.3
    inside = [number for number in numbers if start <= number <= end]
    if len(inside) < 2:
        inside = [number for number in numbers if low / 2.5 <= number <= high * 2.5]
        start, end = min(start, inside[0]), max(end, inside[-1])
    return start, end, [(number, f"{number:,.0f}") for number in inside]
