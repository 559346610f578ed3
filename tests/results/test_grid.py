"""The picture of the model has an element for every component at its layer and place."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from broca.results.base import ModelInfo
from broca.results.pages.drawing import LIGHT
from broca.results.pages.grid import MOST_NEURONS, ComponentGrid, counted

SVG = "{http://www.w3.org/2000/svg}"


def cells(grid, width=900.0):
    """Returns by component its vertical position, its cell and its row."""
    return {
        cell.component: (row.y, cell, row)
        for row in grid.draw(width).rows
        for cell in row.cells
        if cell.component
    }


def texts(grid):
    """Returns the texts of a grid."""
    return {label.text for label in grid.draw().labels}


def model(layers, heads, kv_heads=None, **more):
    """Returns a model of a shape."""
    return ModelInfo("toy", "f", "A", layers, heads, kv_heads, "float32", **more)


@pytest.mark.parametrize(("layers", "heads", "group"), [(2, 3, None), (32, 32, 4), (80, 128, 16)])
def test_no_two_components_overlap(layers, heads, group):
    """Layers run from top to bottom and heads from left to right in models of any size."""
    effects = {f"L{la}H{he}": 0.1 for la in range(layers) for he in range(heads)}
    grid = ComponentGrid(effects, "effect", model(layers, heads, group and heads // group))
    drawn = cells(grid)
    assert list(drawn) == list(effects)
    width = grid.draw().width
    for layer in range(layers):
        row = [drawn[f"L{layer}H{head}"] for head in range(heads)]
        edges = [cell.x for _, cell, _ in row]
        assert all(a + row[0][2].width < b for a, b in itertools.pairwise(edges))
        assert edges[-1] + row[0][2].width <= width
        if layer:
            above = drawn[f"L{layer - 1}H0"]
            assert above[0] + above[2].height < row[0][0]


def test_key_value_groups_are_set_apart():
    """The gap between two groups is wider than the gap within a group."""
    grid = ComponentGrid({f"L0H{head}": 0.0 for head in range(4)}, "effect", model(1, 4, 2))
    x = [cell.x for _, cell, _ in cells(grid).values()]
    assert x[2] - x[1] > x[1] - x[0] == x[3] - x[2]
    assert "head, in KV groups of 2" in texts(grid)
    one, own = (ComponentGrid({}, "effect", model(1, 4, kv_heads)) for kv_heads in (1, 4))
    assert one.group is own.group is None


def test_kinds_of_components_have_blocks():
    """Attention, MLP and experts of a layer are side by side, and each kind has its name."""
    names = [f"L{layer}{part}" for layer in (0, 1) for part in ("A", "M", "E0", "E1")]
    grid = ComponentGrid(dict.fromkeys(names, 0.5), "effect")
    drawn = cells(grid)
    assert set(drawn) == set(names)
    assert drawn["L0A"][1].x < drawn["L0M"][1].x < drawn["L0E0"][1].x < drawn["L0E1"][1].x
    assert {"attention", "MLP", "expert"} <= texts(grid)
    assert "head" not in texts(grid)


def test_what_is_not_known_is_not_zero():
    """An unmeasured component is hatched and explained in the legend.

    A missing one has no cell, but room, if the model has it.
    """
    grid = ComponentGrid({"L0H0": None, "L0H1": 0.0, "L2H0": -1.0}, "effect", model(3, 2))
    drawn = cells(grid)
    assert [drawn[name][1].step for name in ("L0H0", "L0H1", "L2H0")] == [None, 0, -16]
    names = [f"L{layer}H{head}" for layer in range(3) for head in range(2)]
    everything = cells(ComponentGrid(dict.fromkeys(names), "", model(3, 2)))
    assert set(everything) - set(drawn) == {"L1H0", "L1H1", "L2H1"}
    assert all(drawn[name][0] == everything[name][0] for name in drawn)
    assert drawn["L2H0"][2].width == everything["L2H0"][2].width
    assert {"not measured", "−1", "0", "1", "Colour: effect"} <= texts(grid)


def test_the_strongest_of_many_neurons_are_drawn():
    """Many neurons are reduced to the strongest and the selected."""
    effects = {f"L0N{place}": -place / 1e4 for place in range(MOST_NEURONS + 500)}
    grid = ComponentGrid(effects, "score", model(1, 1, neurons=10_000), selected=("L0N3",))
    assert set(cells(grid)) == {"L0N3", *list(effects)[500:]}
    assert "0 to 9,999" in texts(grid)


def test_an_invalid_component_name_is_not_drawn():
    """Text from a file that is not a component's name is left out of the picture."""
    grid = ComponentGrid({"<b>": 1.0, "L0H0": 1.0}, "effect")
    assert re.findall(r'data-component="([^"]*)"', grid.svg("")) == ["L0H0"]
    assert counted(["<b>"]) == "1 components"


@pytest.mark.parametrize("alone", [False, True])
def test_every_mark_is_an_element(alone):
    """Cells name their components; frames and dots lie over them; text is escaped.

    A page has colour classes, a file of its own has colours.
    """
    effects = {"L0H0": -1.0, "L0H1": None}
    grid = ComponentGrid(effects, "<b>", selected=("L0H0",), universal=("L0H1",))
    root = ElementTree.fromstring(grid.svg("The <model>.", alone=alone))
    assert (root.attrib["aria-label"], root.attrib["role"]) == (
        "The <model>. 2 heads by layer; selected: L0H0", "img",
    )  # fmt: skip
    assert "Colour: <b>" in {text.text for text in root.iter(f"{SVG}text")}
    first, second = root.find(f"{SVG}g")
    assert [cell.attrib["data-component"] for cell in (first, second)] == ["L0H0", "L0H1"]
    looks = [cell.attrib["fill" if alone else "class"] for cell in (first, second)]
    assert looks == ([LIGHT["harm"], "url(#unknown)"] if alone else ["n16", "u"])
    frame, rim, dot, *_ = root.findall(f"{SVG}rect")
    assert frame.attrib["data-frame"] == "L0H0"
    drawn = cells(grid)
    _, cell, row = drawn["L0H0"]
    assert float(frame.attrib["x"]) < cell.x < cell.x + row.width
    assert float(frame.attrib["width"]) > row.width
    for circle in (rim, dot):
        middle = float(circle.attrib["x"]) + float(circle.attrib["rx"])
        assert middle == pytest.approx(drawn["L0H1"][1].x + row.width / 2, abs=0.1)
    assert root.find(f"{SVG}defs/{SVG}pattern").attrib["id"] == "unknown"
