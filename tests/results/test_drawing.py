"""A drawing is written as a single SVG element that is valid XML and safe with any text."""

from xml.etree import ElementTree

from broca.results.pages.colours import LIGHT
from broca.results.pages.drawing import (
    SHAPES,
    CellMark,
    Cells,
    Drawing,
    Label,
    MarkGroup,
    Polyline,
    Rect,
    Segment,
    Symbol,
    overlay,
    shortened,
    svg,
    walk,
)

SVG = "{http://www.w3.org/2000/svg}"
ROW = Cells(
    5, 8, 6, (CellMark(0, -16, "L0H0", framed=True), CellMark(9, None, "L0H1", dotted=True))
)


def drawn(*marks, alone=False):
    """Returns the SVG element of a drawing of these marks."""
    return ElementTree.fromstring(svg(Drawing(100, 50, marks, "some <marks>"), alone=alone))


def test_every_mark_is_an_element():
    """Text, lines and all shapes are elements; the text alternative labels the picture."""
    marks = (
        Rect(0, 0, 5, 5, "harm", title="a & b"), Segment(0, 0, 1, 1, "ink", dashed=True),
        Polyline(((0, 0), (1, 2)), "gain", dash="2 2"), Label(1, 1, "<b>", turned=True),
        *(Symbol(1, 1, shape, "harm") for shape in SHAPES),
    )  # fmt: skip
    root = drawn(*marks)
    assert root.attrib["aria-label"] == "some <marks>"
    assert root.attrib["role"] == "img"
    assert len(list(root)) == len(marks)
    assert root.find(f"{SVG}text").text == "<b>"
    assert root.find(f"{SVG}rect/{SVG}title").text == "a & b"


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
    assert (frames.label, frames.y, dots.y, frame.outline > 0) == ("frames", 5, 5, True)
    assert (frame.x < 0, frame.x + frame.width > 8) == (True, True)
    assert (rim.role, dot.role, dot.x) == ("paper", "ink", 13)
    assert overlay(Cells(0, 8, 6, (CellMark(0, 0),))) == []


def test_groups_move_their_marks():
    """A group translates its marks, and `walk` yields the marks within groups."""
    label = Label(1, 2, "x")
    group = MarkGroup(10, 20, (MarkGroup(1, 1, (label,)),))
    assert list(walk((group,))) == [label]
    assert drawn(group).find(f"{SVG}g").attrib["transform"] == "translate(10,20)"


def test_long_texts_are_cut():
    """A text that is cut ends with an ellipsis."""
    assert shortened("short", 100) == "short"
    assert shortened("a" * 50, 70).endswith("…")
    assert len(shortened("a" * 50, 70)) < 13
