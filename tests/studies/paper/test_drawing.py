"""Figures are drawn from rows and show the rows' numbers."""

from dataclasses import replace

import pytest
from broca.studies.paper.drawing import draw

from broca.studies.paper import Reproduction

DRAWN = ("table2", "table3", "table4", "table6", "table7", "figure1", "figure2", "figure4", "gqa")


@pytest.mark.parametrize("name", DRAWN)
def test_every_table_that_can_be_drawn_is_drawn(everything, name):
    """One model has one figure; two models have one figure each, named after the model."""
    shown = everything[name]
    if name == "table7" and len(shown.rows) == 1:
        assert draw(shown) == []
        return
    (figure,) = draw(shown)
    assert figure.svg().startswith("<svg")
    others = tuple({**row, "model": "<b>other"} for row in shown.rows)
    figures = draw(replace(shown, models=(*shown.models, "<b>other"), rows=(*shown.rows, *others)))
    models = [drawn.caption.split(": ")[0] for drawn in figures]
    assert models == ["random/three-layers", "<b>other"]
    assert len({drawn.name for drawn in figures}) == 2


def test_points_are_the_drops(everything):
    """Points are the drops of the task and of the general score, with the ends of the intervals."""
    shown = everything["table2"]
    chart = draw(shown)[0].chart
    task, general = chart.series
    assert chart.rows == tuple(row["task"] for row in shown.rows)
    assert [point.value for _, point in task.points] == pytest.approx(
        [100 * row["drop"] for row in shown.rows]
    )
    assert [point.high for _, point in task.points] == pytest.approx(
        [100 * row["drop_high"] for row in shown.rows]
    )
    assert [point.value for _, point in general.points] == pytest.approx(
        [100 * row["general_drop"] for row in shown.rows]
    )


def test_a_sweep_has_a_panel_a_task_with_intervals(everything):
    """Each panel has lines in points for the task, its skill if measured, and the others."""
    shown = everything["table6"]
    panels = draw(shown)[0].chart
    tasks = list(dict.fromkeys(row["task"] for row in shown.rows))
    assert list(panels.titles) == tasks
    for task, chart in zip(tasks, panels.charts, strict=True):
        task_rows = [row for row in shown.rows if row["task"] == task]
        lines = {line.name: line for line in chart.lines}
        skill = any("same_skill_drop" in row for row in task_rows)
        assert list(lines) == ["the task", *(["its skill"] if skill else []), "the others"]
        assert list(lines["the task"].x) == list(range(len(task_rows)))
        points = lines["the task"].points
        assert [point.value for point in points] == pytest.approx(
            [100 * r["drop"] for r in task_rows]
        )
        assert points[0].high is None  # nothing is ablated yet
        assert [point.high for point in points[1:]] == pytest.approx(
            [100 * r["drop_high"] for r in task_rows[1:]]
        )
        others = [point.value for point in lines["the others"].points]
        assert others == pytest.approx([100 * row["general_drop"] for row in task_rows])


def test_a_radar_has_a_panel_a_list(everything):
    """Each list's panel shows the intact and ablated scores of every task."""
    shown = everything["figure1"]
    panels = draw(shown)[0].chart
    lists = [
        name for name in dict.fromkeys(row["heads_of"] for row in shown.rows) if name != "none"
    ]
    assert panels.titles == tuple(f"without heads of {name}" for name in lists)
    for name, chart in zip(lists, panels.charts, strict=True):
        list_rows = [row for row in shown.rows if row["heads_of"] == name]
        assert chart.rows == tuple(row["measured_on"] for row in list_rows)
        for series in chart.series:
            assert [p.value for _, p in series.points] == [row[series.name] for row in list_rows]


def test_colours_of_heatmaps_mean_the_same_for_every_model():
    """The colour scale spans -100 to 100 points whatever the values."""
    rows = tuple({"model": "m", "head": head, "a": score, "mean": score}
                 for head, score in (("none", 1.0), ("L0H1", 0.99)))  # fmt: skip
    (figure,) = draw(Reproduction("table7", ("m",), rows, {}))
    assert figure.chart.span == 100


def test_scale_joins_the_models_of_each_task_by_size():
    """The line of a task joins the models from the smallest to the largest."""
    rows = tuple(
        {"model": name, "task": "t", "parameters": size, "drop": drop, "drop_low": drop,
         "drop_high": drop}
        for name, size, drop in (("large", 200, 0.5), ("small", 100, 0.25))
    )  # fmt: skip
    (line,) = draw(Reproduction("scale", ("large", "small"), rows, {}))[0].chart.lines
    assert line.x == (100, 200)
    assert [point.value for point in line.points] == [25, 50]
    assert [point.title for point in line.points] == ["small", "large"]


def test_a_heatmap_shows_what_is_lost_without_each_head():
    """Cells are drops against the intact row; tables without drops are not drawn."""
    intact = {"model": "m", "head": "none", "a": 1.0, "b": 0.5, "mean": 0.75}
    head = {"model": "m", "head": "L0H1", "a": 0.25, "b": 0.5, "mean": 0.375}
    (figure,) = draw(Reproduction("table7", ("m",), (intact, head), {}))
    assert figure.chart.rows == ("L0H1",)
    assert figure.chart.columns == ("a", "b")
    assert figure.chart.values == ((-75, 0),)
    assert draw(Reproduction("table7", ("m",), (intact,), {})) == []
    assert draw(Reproduction("table9", ("m",), ({"model": "m", "task": "a"},), {})) == []
