"""Charts draw their data, on a page in the reader's colours and in a file for a paper."""

import re
from xml.etree import ElementTree

import pytest
from results.samples import make_result
from simulated import toy_verification

from broca.errors import BadInput
from broca.results.base import Interval
from broca.results.pages import SERIES, charts
from broca.results.pages.colours import LIGHT
from broca.results.pages.drawing import (
    CellMark,
    Cells,
    Dot,
    Drawing,
    Frame,
    Label,
    MarkGroup,
    Segment,
    colour_legend,
    overlay,
    short,
    shortened,
    svg,
    walk,
)
from broca.results.pages.figure import INCHES, Figure

SVG = "{http://www.w3.org/2000/svg}"
ROW = Cells(
    5, 8, 6, (CellMark(0, -16, "L0H0", framed=True), CellMark(9, None, "L0H1", dotted=True))
)
CHART = charts.IntervalChart(
    ("first", "second"),
    (
        charts.Series("intact", "intact", ((0, charts.Point(1.0)), (1, charts.Point(0.5)))),
        charts.Series("ablated", "harm", ((0, charts.Point(0.2, 0.1, 0.4)),)),
    ),
    "score <b>",
    joined=True,
    text="some <marks>",
    bold=("first",),
)


def axes_of(chart):
    """Returns the axes that a chart paints."""
    return chart.paint(600.0, 1.0).axes[0]


def segments(axes):
    """Returns the straight lines of an axes, each as its two ends."""
    lines = [path for group in axes.collections for path in group.get_segments()]
    return [tuple(map(tuple, line.tolist())) for line in lines]


def test_points_and_intervals_lie_at_their_values():
    """Rows run from top to bottom; lines join the points of a row and the ends of an interval."""
    axes = axes_of(CHART)
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["intact"] == [[1.0, 0.0], [0.5, 1.0]]
    assert drawn["ablated"] == [[0.2, 0.0]]
    assert set(segments(axes)) == {((0.2, 0.0), (1.0, 0.0)), ((0.1, 0.0), (0.4, 0.0))}
    labels = axes.get_yticklabels()
    assert [(label.get_text(), label.get_fontweight()) for label in labels] == [
        ("first", "bold"), ("second", "normal"),
    ]  # fmt: skip
    low, high = axes.get_xlim()
    assert low < 0 < 1 < high  # the axis begins at nothing
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert charts.Point.of(Interval(0.5, 0.4, 0.7), scale=100) == charts.Point(50, 40, 70)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_lines_follow_their_points(logarithmic):
    """A line has its points and intervals; the mark is a vertical line at its number."""
    points = (charts.Point(0.0), charts.Point(5.0, 4.0, 7.0), charts.Point(10.0))
    line = charts.Line("a", (1.0, 10.0, 100.0), points, "series1")
    chart = charts.LineChart((line,), "rows", "points", logarithmic=logarithmic, mark=10.0)
    axes = axes_of(chart)
    assert [[1, 0], [10, 5], [100, 10]] in [drawn.get_xydata().tolist() for drawn in axes.lines]
    assert segments(axes) == [((10.0, 4.0), (10.0, 7.0))]
    assert [10, 10] in [list(drawn.get_xdata()) for drawn in axes.lines]
    assert axes.get_xscale() == ("log" if logarithmic else "linear")
    if logarithmic:
        form = axes.xaxis.get_major_formatter()
        assert [form(value) for value in (1000, 2000, 3000, 1e6)] == ["1,000", "2,000", "",
                                                                      "1,000,000"]  # fmt: skip


def test_lines_of_the_same_colour_have_different_symbols():
    """Lines that repeat a colour have another symbol, and none has that of intact models."""
    lines = [charts.Line("", (), (), SERIES[n % len(SERIES)], n) for n in range(3 * len(SERIES))]
    assert len({(line.role, line.shape) for line in lines}) == len(lines)
    assert "ring" not in {line.shape for line in lines}


def test_bars_are_as_long_as_their_values():
    """The first bar is at the top, and a count of zero has no length."""
    axes = axes_of(charts.Bars(("a", "b", "c"), (4, 2, 0), "n"))
    assert [bar.get_width() for bar in axes.patches] == [4, 2, 0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]


def test_panels_stand_side_by_side_where_there_is_room():
    """Panels are stacked where they are too wide, and each has its title."""
    panels = charts.Panels(("one", "two"), (CHART, CHART))
    narrow, wide = (panels.paint(width, 1.0) for width in (430.0, 820.0))
    assert narrow.get_figheight() > wide.get_figheight()
    assert [axes.get_title(loc="left") for axes in wide.axes] == ["one", "two"]


@pytest.mark.parametrize("chart", [CHART, charts.Panels(("a $x$",), (CHART,), "some <marks>")])
def test_a_plot_on_a_page_follows_the_readers_colours(chart):
    """It is one element of valid XML, with text as text and without style sheets and names."""
    page, alone = chart.svg(), chart.svg(alone=True)
    assert "var(--harm)" in page
    assert "#" not in re.sub(r'(href="|url\()#', "", page)
    assert LIGHT["harm"] in alone
    for text in (page, alone):
        root = ElementTree.fromstring(text)
        assert root.attrib["aria-label"] == "some <marks>"
        assert not root.findall(f".//{SVG}style")
        words = {part.text for part in root.iter(f"{SVG}text")}
        assert {"first", "second", "intact", "ablated", "score <b>"} <= words
        assert not [part for part in root.iter(f"{SVG}g") if "id" in part.attrib]


def test_a_matrix_has_a_cell_for_every_value():
    """Unknown values have no colour step and are explained as not measured."""
    chart = charts.Matrix(("a", "b"), ("x", "y"), ((1.0, None), (-0.5, 0.0)), 1.0, "unit",
                   texts=(("1", ""), ("-.5", "0")), framed=frozenset({(1, 0)}))  # fmt: skip
    marks = list(walk(chart.draw(400).marks))
    rows = [mark for mark in marks if isinstance(mark, Cells) and mark.height > 20]
    assert [[cell.step for cell in row.cells] for row in rows] == [[16, None], [-8, 0]]
    assert [cell.framed for row in rows for cell in row.cells] == [False, False, True, False]
    assert any(isinstance(mark, Label) and mark.text == "not measured" for mark in marks)


def test_the_scale_of_colours_states_its_ends():
    """The legend has the ends and the marks in use; without known values it has no scale."""
    marks, end = colour_legend(0.25, "effect", 0, 0, 600, framed="selected")
    texts = [mark.text for mark in walk(marks) if isinstance(mark, Label)]
    assert {"−0.25", "0", "0.25", "selected", "Colour: effect"} <= set(texts)
    assert "not measured" not in texts
    marks, lower = colour_legend(None, "effect", 0, 0, 600, unknown="not measured")
    assert [mark.text for mark in walk(marks) if isinstance(mark, Label)] == ["not measured"]
    assert lower < end
    assert [short(value) for value in (-0.12345, 1234.5, 2.0)] == ["−0.123", "1,234", "2"]


def drawn(*marks, alone=False):
    """Returns the SVG element of a drawing of these marks."""
    return ElementTree.fromstring(svg(Drawing(100, 50, marks, "some <marks>"), alone=alone))


def test_every_mark_is_an_element():
    """Text, lines and all shapes are elements; the text alternative labels the picture."""
    marks = (
        Frame(0, 0, 5, 5, 1), Segment(0, 0, 1, 1, "ink"), Dot(1, 1, "ink", 2),
        Label(1, 1, "<b>", turned=True), MarkGroup(10, 20, (Label(1, 2, "x"),)),
    )  # fmt: skip
    root = drawn(*marks)
    assert (root.attrib["aria-label"], root.attrib["role"]) == ("some <marks>", "img")
    assert len(list(root)) == len(marks)
    assert root.find(f"{SVG}text").text == "<b>"
    assert root.find(f"{SVG}g").attrib["transform"] == "translate(10,20)"
    assert shortened("short", 100) == "short"
    assert shortened("a" * 50, 70).endswith("…")


def test_cells_name_their_components():
    """Each cell is an element; a page has colour classes, a file of its own has fill colours."""
    page, alone = drawn(ROW), drawn(ROW, alone=True)
    for root in (page, alone):
        names = [cell.attrib["data-component"] for cell in root.iter(f"{SVG}rect")]
        assert names == ["L0H0", "L0H1"]
    assert [cell.attrib["class"] for cell in page.iter(f"{SVG}rect")] == ["n16", "u"]
    fills = [cell.attrib["fill"] for cell in alone.iter(f"{SVG}rect")]
    assert fills == [LIGHT["harm"], "url(#unknown)"]
    assert alone.find(f"{SVG}defs/{SVG}pattern").attrib["id"] == "unknown"


def test_frames_and_dots_are_drawn_over_all_rows():
    """Frames and dots of the cells are groups at the place of their row."""
    frames, dots = overlay(ROW)
    (frame,), (rim, dot) = frames.marks, dots.marks
    assert (frames.label, frames.y, dots.y, frame.line > 0) == ("frames", 5, 5, True)
    assert (frame.x < 0, frame.x + frame.width > 8) == (True, True)
    assert (rim.role, dot.role, dot.x) == ("paper", "ink", 13)
    assert overlay(Cells(0, 8, 6, (CellMark(0, 0),))) == []


@pytest.fixture(scope="module", params=["cells", "plot"])
def figure(request):
    """The picture of a model, and a plot."""
    if request.param == "cells":
        return make_result().plot()
    return Figure("curve", "", toy_verification().figures()[2].chart)


@pytest.mark.parametrize("width", ["column", "page"])
def test_pdf_has_its_width_and_its_fonts(figure, width, tmp_path):
    """A PDF has its width in points and embedded TrueType fonts."""
    content = figure.save(tmp_path / "figure.pdf", width=width).read_bytes()
    assert content.startswith(b"%PDF")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", content)
    assert float(box.group(1)) == pytest.approx(72 * INCHES[width], abs=1)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_svg_and_png_are_written(figure, tmp_path):
    """SVG text is drawn as outlines that need no font; PNG has 300 dots per inch."""
    text = figure.save(tmp_path / "figure.svg", width="column").read_text()
    assert "<text" not in text
    assert "<svg" in text
    content = figure.save(tmp_path / "figure.png", width="column").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(300 * INCHES["column"], abs=1)


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_the_same_figure_is_the_same_file(figure, suffix, tmp_path):
    """Files contain no date and no random names."""
    first, second = (figure.save(tmp_path / f"{n}.{suffix}").read_bytes() for n in (1, 2))
    assert first == second
    assert figure._repr_html_() == figure.svg()
    assert "class=" not in figure.svg().replace('class="c ', "")


def test_unknown_formats_and_places_are_refused(figure, tmp_path):
    """The message names the format, width or path that cannot be used."""
    with pytest.raises(BadInput, match="`format` 'gif' is unknown: use pdf, svg, png"):
        figure.save(tmp_path / "figure.gif")
    with pytest.raises(BadInput, match="`width` 'poster' is unknown"):
        figure.save(tmp_path / "figure.pdf", width="poster")
    with pytest.raises(BadInput, match="cannot be written"):
        figure.save(tmp_path / "nowhere" / "figure.pdf")
