"""Charts draw their data in colours of one meaning, on a page and in a file for a paper."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from results.samples import make_result
from simulated import toy_verification

from broca.errors import BadInput
from broca.results.base import Interval
from broca.results.pages import charts, drawing
from broca.results.pages.drawing import DARK, LEVELS, LIGHT, SERIES, level

SVG = "{http://www.w3.org/2000/svg}"
INTACT = charts.Series("intact", "intact", ((0, 1.0), (1, 0.5)), "ring")
ABLATED = charts.Series("ablated", "harm", ((0, Interval(0.2, 0.1, 0.4)),))
CHART = charts.IntervalChart(("first", "second"), (INTACT, ABLATED), "score <b>", joined=True)


def axes_of(chart):
    """Returns the axes that a chart paints."""
    return chart.paint(600.0, 1.0).axes[0]


def segments(axes):
    """Returns the straight lines of an axes, each as its two ends."""
    lines = [path for group in axes.collections for path in group.get_segments()]
    return {tuple(map(tuple, line.tolist())) for line in lines}


def test_points_and_intervals_lie_at_their_values():
    """Rows run from top to bottom; lines join the points of a row and the ends of an interval."""
    axes = axes_of(CHART)
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["intact"] == [[1.0, 0.0], [0.5, 1.0]]
    assert drawn["ablated"] == [[0.2, 0.0]]
    assert segments(axes) == {((0.2, 0.0), (1.0, 0.0)), ((0.1, 0.0), (0.4, 0.0))}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]
    low, high = axes.get_xlim()
    assert low < 0 < 1 < high  # the axis begins at nothing
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_lines_follow_their_points():
    """A line has its points and intervals."""
    line = charts.Series.line(0, "a", ((1.0, 0.0), (10.0, Interval(5.0, 4.0, 7.0)), (100.0, 10.0)))
    chart = charts.LineChart((line,), "rows", "points")
    axes = axes_of(chart)
    assert [[1, 0], [10, 5], [100, 10]] in [drawn.get_xydata().tolist() for drawn in axes.lines]
    assert segments(axes) == {((10.0, 4.0), (10.0, 7.0))}


def test_lines_of_the_same_colour_have_different_symbols():
    """Lines that repeat a colour have another symbol, and none has that of intact models."""
    lines = [charts.Series.line(number, "", ()) for number in range(3 * len(SERIES))]
    assert len({(line.role, line.marker) for line in lines}) == len(lines)
    assert "ring" not in {line.marker for line in lines}


def test_a_plot_on_a_page_follows_the_readers_colours():
    """It is one element of valid XML, with text as text and without style sheets and names."""
    odd = charts.IntervalChart(("",), (charts.Series('a|b & "<c>"', "harm", ((0, 0.5),)),), "")
    titles = ElementTree.fromstring(odd.svg("")).iter(f"{SVG}title")
    assert [title.text for title in titles] == ['a|b & "<c>" 0.5']
    page, alone = CHART.svg("some <marks>"), CHART.svg("some <marks>", alone=True)
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
    """Unknown values have no colour and are explained; the legend states the ends of the scale."""
    chart = charts.Matrix(("a", "b"), ("x", "y"), ((0.25, None), (-0.125, 0.0)), 0.25, "unit",
                   texts=(("1", ""), ("-.5", "0")), framed=frozenset({(1, 0)}))  # fmt: skip
    axes, scale = chart.paint(400.0, 1.0).axes
    (mesh,) = axes.collections
    cells = {
        tuple(map(int, square[0])): step
        for path, step in zip(mesh.get_paths(), mesh.get_array(), strict=True)
        for square in path.to_polygons()
    }
    assert cells == {(0, 0): LEVELS, (0, 1): -LEVELS // 2, (1, 1): 0}
    (frame,) = axes.patches
    assert frame.get_xy() == (0, 1)
    assert [(text.get_text(), text.get_position()) for text in axes.texts] == [
        ("1", (0.5, 0.5)), ("-.5", (0.5, 1.5)), ("0", (1.5, 1.5)),
    ]  # fmt: skip
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    ends = [label.get_text().partition("\n")[0] for label in scale.get_xticklabels()]
    assert ends == ["−0.25", "0", "0.25"]
    assert "unit; framed: needed beyond the others; hatched: not measured" in scale.get_xlabel()
    page = chart.svg("some <marks>")
    assert "color-mix(in srgb,var(--harm) 50%,var(--cell))" in page
    assert "var(--gain)" in page
    assert drawing.step_colour(-LEVELS // 2) in chart.svg("some <marks>", alone=True)


@pytest.mark.parametrize("make", [make_result, toy_verification])  # cells, and a plot
@pytest.mark.parametrize("width", ["column", "page"])
def test_files_have_their_width_and_their_fonts(make, width, tmp_path):
    """PDF has embedded TrueType fonts, SVG outlines that need no font, PNG 300 dots per inch.

    Files contain no date and no random names.
    """
    figure = make().plot()
    for suffix in ("pdf", "svg", "png"):
        first, second = (
            figure.save(tmp_path / f"{name}.{suffix}", width=width).read_bytes()
            for name in ("figure", "again")
        )
        assert first == second
    with pytest.raises(BadInput, match="cannot be written"):
        figure.save(tmp_path / "nowhere" / "figure.pdf")
    content = (tmp_path / "figure.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", content)
    assert float(box.group(1)) == pytest.approx(72 * charts.INCHES[width], abs=1)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert "<text" not in (tmp_path / "figure.svg").read_text()
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(300 * charts.INCHES[width], abs=1)


def luminance(colour):
    """Returns the relative luminance of `#rrggbb` as defined by WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    """Returns the contrast ratio of two colours."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_and_differ_for_every_reader(scheme):
    """Graphics have a contrast of at least 3:1 with the page, and text of at least 4.5:1.

    Losses and gains differ in the blue channel, for readers with red-green blindness; things
    without order have neither of these colours and differ from one another.
    """
    for role in ("harm", "gain", "intact", *SERIES):
        assert contrast(scheme[role], scheme["paper"]) >= 3
    for role, page in itertools.product(("ink", "muted"), ("paper", "ground")):
        assert contrast(scheme[role], scheme[page]) >= 4.5
    harm, gain = (int(scheme[role][5:7], 16) for role in ("harm", "gain"))
    assert gain - harm > 90
    assert len({scheme[role] for role in (*SERIES, "harm", "gain")}) == len(SERIES) + 2


def test_steps_grow_with_the_value_and_keep_its_sign():
    """The smallest nonzero effect is not drawn as zero, and what is not known has no step.

    In print, the full step is the colour of its role, and neighbouring steps differ.
    """
    assert [level(value, 2.0) for value in (0.0, 2.0, -2.0, 5.0, -1.0, 1e-9, -1e-9)] == [
        0, LEVELS, -LEVELS, LEVELS, -LEVELS // 2, 1, -1,
    ]  # fmt: skip
    assert level(None, 1.0) is level(float("nan"), 1.0) is None
    steps = [drawing.step_colour(step) for step in range(-LEVELS, LEVELS + 1)]
    assert (steps[0], steps[LEVELS], steps[-1]) == (LIGHT["harm"], LIGHT["cell"], LIGHT["gain"])
    assert all(a != b for a, b in itertools.pairwise(steps))
