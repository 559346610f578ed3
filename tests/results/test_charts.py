"""Charts draw their data at the places of their axes."""

import pytest

from broca.results.base import Interval
from broca.results.pages import SERIES, charts
from broca.results.pages.drawing import Cells, Label, Segment, Symbol, walk


def symbols(chart, width=600.0):
    """Returns the symbols of a chart without those of its legend."""
    drawn = list(walk(chart.draw(width).marks))
    return [mark for mark in drawn if isinstance(mark, Symbol) and mark.title]


def ticks(chart, width=600.0):
    """Returns the numbers on the horizontal axis with their places."""
    places = {}
    for mark in walk(chart.draw(width).marks):
        if isinstance(mark, Label) and mark.anchor == "middle" and mark.size == 11:
            text = mark.text.replace("−", "-").replace(",", "")
            if text.lstrip("-").replace(".", "").isdigit():
                places[float(text)] = mark.x
    return places


CHART = charts.IntervalChart(
    ("first", "second"),
    (
        charts.Series("intact", "intact", ((0, charts.Point(1.0)), (1, charts.Point(0.5)))),
        charts.Series("ablated", "harm", ((0, charts.Point(0.2, 0.1, 0.4)),)),
    ),
    "score",
)


def test_points_lie_where_the_axis_says():
    """Points lie at their value between the numbers of the axis, at any width."""
    for width in (430.0, 820.0):
        places = ticks(CHART, width)
        unit = places[1.0] - places[0.0]
        assert [s.x for s in symbols(CHART, width)] == pytest.approx(
            [places[0.0] + unit * value for value in (1.0, 0.2, 0.5)]
        )


def test_an_interval_is_a_line_between_its_ends():
    """A line is drawn only if the ends of the interval are known."""
    places = ticks(CHART)
    unit = places[1.0] - places[0.0]
    lines = [m for m in walk(CHART.draw(600).marks) if isinstance(m, Segment) and m.role == "harm"]
    longest = max(lines, key=lambda line: line.x2 - line.x1)
    assert [longest.x1, longest.x2] == pytest.approx(
        [places[0.0] + unit * value for value in (0.1, 0.4)]
    )
    assert not [m for m in walk(CHART.draw(600).marks)
                if isinstance(m, Segment) and m.role == "intact"]  # fmt: skip


def test_stacked_series_have_a_line_each():
    """Stacked series have different heights, and joined points are connected by lines."""
    stacked = charts.IntervalChart(CHART.rows, CHART.series, "score", stacked=True)
    first, second = (mark for mark in symbols(stacked) if mark.x != symbols(stacked)[2].x)
    assert first.y != second.y
    joined = charts.IntervalChart(CHART.rows, CHART.series, "score", joined=True)
    assert any(isinstance(m, Segment) and m.width == 2 for m in walk(joined.draw(600).marks))


def test_a_point_of_an_interval_keeps_its_ends():
    """A point has the value and ends of its interval in the unit of the scale."""
    point = charts.Point.of(Interval(0.5, 0.4, 0.7), scale=100)
    assert point.ends == (50, 40, 70)


def test_lines_of_the_same_colour_have_different_symbols():
    """Lines that repeat a colour have another symbol, and none has that of intact models."""
    lines = [charts.Line("", (), (), SERIES[n % len(SERIES)], n) for n in range(3 * len(SERIES))]
    assert len({(line.role, line.shape) for line in lines}) == len(lines)
    assert "ring" not in {line.shape for line in lines}


def test_lines_rise_with_their_values():
    """Values rise on linear and logarithmic axes, and the dashed mark is at its number."""
    line = charts.Line(
        "a",
        (1.0, 10.0, 100.0),
        (charts.Point(0.0), charts.Point(5.0), charts.Point(10.0)),
        "series1",
    )
    for logarithmic in (False, True):
        chart = charts.LineChart((line,), "rows", "points", logarithmic=logarithmic, mark=10.0)
        first, second, third = symbols(chart)
        assert first.y > second.y > third.y
        assert first.x < second.x < third.x
        middle = (first.x + third.x) / 2
        assert (second.x == pytest.approx(middle)) is logarithmic
        marks = [m for m in walk(chart.draw(600).marks) if isinstance(m, Segment) and m.dashed]
        assert [mark.x1 for mark in marks] == pytest.approx([second.x])


@pytest.mark.parametrize("rows", [(1940, 9420), (100, 100), (95, 1_000_000), (3,)])
def test_logarithmic_axes_have_round_numbers_around_all_values(rows):
    """All values lie within the axis, and its numbers are written in full."""
    low, high, numbers = charts.logarithmic_axis([float(value) for value in rows])
    assert all(int(text.replace(",", "")) == value for value, text in numbers)
    assert len(numbers) >= 2
    assert low < min(rows) <= max(rows) < high
    assert all(low <= value <= high for value, _ in numbers)


def test_a_matrix_has_a_cell_for_every_value():
    """Unknown values have no colour step and are explained as not measured."""
    chart = charts.Matrix(("a", "b"), ("x", "y"), ((1.0, None), (-0.5, 0.0)), 1.0, "unit",
                   texts=(("1", ""), ("-.5", "0")), framed=frozenset({(1, 0)}))  # fmt: skip
    marks = list(walk(chart.draw(400).marks))
    rows = [mark for mark in marks if isinstance(mark, Cells) and mark.label]
    assert [[cell.step for cell in row.cells] for row in rows] == [[16, None], [-8, 0]]
    assert [cell.framed for row in rows for cell in row.cells] == [False, False, True, False]
    assert any(isinstance(mark, Label) and mark.text == "not measured" for mark in marks)


def test_panels_stand_side_by_side_where_there_is_room():
    """Panels are stacked where they are too wide, and each has its title."""
    panels = charts.Panels(("one", "two"), (CHART, CHART))
    assert panels.draw(430).height > panels.draw(820).height
    texts = [mark.text for mark in walk(panels.draw(820).marks) if isinstance(mark, Label)]
    assert {"one", "two"} <= set(texts)


def test_bars_are_as_long_as_their_values():
    """A bar is as long as its value, and a count of zero has no bar."""
    from broca.results.pages.drawing import Rect

    bars = [
        m
        for m in charts.Bars(("a", "b", "c"), (4, 2, 0), "n").draw(500).marks
        if isinstance(m, Rect)
    ]
    assert [bar.width for bar in bars] == pytest.approx([bars[0].width, bars[0].width / 2])


def test_the_scale_of_colours_states_its_ends():
    """The legend has the ends and the marks in use; without known values it has no scale."""
    marks, end = charts.colour_legend(0.25, "effect", 0, 0, 600, framed="selected")
    texts = [mark.text for mark in walk(marks) if isinstance(mark, Label)]
    assert {"−0.25", "0", "0.25", "selected", "Colour: effect"} <= set(texts)
    assert "not measured" not in texts
    marks, lower = charts.colour_legend(None, "effect", 0, 0, 600, unknown="not measured")
    assert [mark.text for mark in walk(marks) if isinstance(mark, Label)] == ["not measured"]
    assert lower < end


def test_numbers_are_short():
    """Numbers have three significant digits and a typographic minus sign."""
    assert [charts.short(value) for value in (-0.12345, 1234.5, 2.0)] == ["−0.123", "1,234", "2"]
