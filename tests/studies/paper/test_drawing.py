"""Figures are drawn from rows alone, and show their numbers."""

from dataclasses import replace

import pytest

from broca.studies.paper import Reproduction
from broca.studies.paper.drawing import _logarithmic, draw

DRAWN = ("table2", "table3", "table4", "table6", "table7", "figure1", "figure2", "figure4", "gqa")


@pytest.mark.parametrize("name", DRAWN)
def test_every_table_that_can_be_drawn_is_drawn(everything, name):
    """One figure for one model; two models have one each, with their names."""
    one = everything[name]
    if name == "table7" and len(one.rows) == 1:
        assert draw(one) == []
        return
    (figure,) = draw(one)
    assert figure.data
    others = tuple({**row, "model": "<b>other"} for row in one.rows)
    both = draw(replace(one, models=(*one.models, "<b>other"), rows=(*one.rows, *others)))
    assert [each.layout.title.text for each in both] == ["random/three-layers", "&lt;b&gt;other"]


def test_bars_are_the_drops_in_points(everything):
    """Task and general, with the ends of the intervals."""
    one = everything["table2"]
    task, general = draw(one)[0].data
    assert task.x == tuple(row["task"] for row in one.rows)
    assert list(task.y) == pytest.approx([100 * row["drop"] for row in one.rows])
    tops = [y + up for y, up in zip(task.y, task.error_y.array, strict=True)]
    assert tops == pytest.approx([100 * row["drop_high"] for row in one.rows])
    assert list(general.y) == pytest.approx([100 * row["general_drop"] for row in one.rows])


def test_a_sweep_has_a_panel_a_task_with_intervals(everything):
    """The task with its interval, its skill where there is one, and the others, in points."""
    one = everything["table6"]
    (figure,) = draw(one)
    tasks = list(dict.fromkeys(row["task"] for row in one.rows))
    assert [each.text for each in figure.layout.annotations] == tasks
    assert len(figure.data) == 3 * len(tasks)
    for task, lines in zip(tasks, zip(*[iter(figure.data)] * 3, strict=True), strict=True):
        own = [row for row in one.rows if row["task"] == task]
        assert [line.name for line in lines] == ["the task", "its skill", "the others"]
        assert list(lines[0].x) == list(range(len(own)))
        assert list(lines[0].y) == pytest.approx([100 * row["drop"] for row in own])
        tops = [y + up for y, up in zip(lines[0].y, lines[0].error_y.array, strict=True)]
        assert tops == pytest.approx([100 * row["drop_high"] for row in own])
        assert list(lines[2].y) == pytest.approx([100 * row["general_drop"] for row in own])
    assert sum(bool(line.showlegend) for line in figure.data) == 3


def test_a_radar_has_a_panel_a_list(everything):
    """Intact and ablated scores of every task, closed."""
    one = everything["figure1"]
    (figure,) = draw(one)
    lists = [name for name in dict.fromkeys(row["heads_of"] for row in one.rows) if name != "none"]
    assert len(figure.data) == 2 * len(lists)
    for name, intact, ablated in zip(lists, figure.data[::2], figure.data[1::2], strict=True):
        own = [row for row in one.rows if row["heads_of"] == name]
        for line, column in ((intact, "intact"), (ablated, "ablated")):
            assert list(line.r) == [*(row[column] for row in own), own[0][column]]
            assert line.theta[0] == line.theta[-1] == own[0]["measured_on"]


@pytest.mark.parametrize("rows", [(1940, 9420), (100, 100), (95, 1_000_000), (3,)])
def test_logarithmic_axes_have_round_numbers_around_all_values(rows):
    """Written out, and no value lies outside of the axis."""
    axis = _logarithmic("rows", [{"rows": one} for one in rows])
    assert all(int(text.replace(",", "")) == value
               for text, value in zip(axis["ticktext"], axis["tickvals"], strict=True))  # fmt: skip
    assert len(axis["tickvals"]) >= 2
    assert 10 ** axis["range"][0] < min(rows) <= max(rows) < 10 ** axis["range"][1]


def test_colours_of_heatmaps_mean_the_same_for_every_model():
    """Points lost from -100 to 100, however small they are."""
    rows = tuple({"model": "m", "head": head, "a": score, "mean": score}
                 for head, score in (("none", 1.0), ("L0H1", 0.99)))  # fmt: skip
    (figure,) = draw(Reproduction("table7", ("m",), rows, {}))
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-100, 100)


def test_scale_joins_the_models_of_each_task_by_size():
    """Smallest first, whatever the order of the rows."""
    rows = tuple(
        {"model": name, "task": "t", "parameters": size, "drop": drop, "drop_low": drop,
         "drop_high": drop}
        for name, size, drop in (("large", 200, 0.5), ("small", 100, 0.25))
    )  # fmt: skip
    (figure,) = draw(Reproduction("scale", ("large", "small"), rows, {}))
    assert figure.data[0].x == (100, 200)
    assert figure.data[0].y == (25, 50)
    assert figure.data[0].text == ("small", "large")


def test_a_heatmap_shows_what_is_lost_without_each_head():
    """Against the intact row; without any head there is nothing to draw, nor for lists of names."""
    intact = {"model": "m", "head": "none", "a": 1.0, "b": 0.5, "mean": 0.75}
    head = {"model": "m", "head": "L0H1", "a": 0.25, "b": 0.5, "mean": 0.375}
    (figure,) = draw(Reproduction("table7", ("m",), (intact, head), {}))
    assert figure.data[0].y == ("L0H1",)
    assert figure.data[0].x == ("a", "b")
    assert [list(line) for line in figure.data[0].z] == [[75, 0]]
    assert draw(Reproduction("table7", ("m",), (intact,), {})) == []
    assert draw(Reproduction("table9", ("m",), ({"model": "m", "task": "a"},), {})) == []
