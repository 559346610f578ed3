"""The files of a reproduction: JSON, CSV and a page with its figures."""

import csv
import json
import re
from dataclasses import replace

import pytest

from broca.results.runs import Reproduction
from broca.studies import NAMES
from broca.studies.pages import draw, render_page, write

SETTINGS = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}
DRAWN = ("figure1", "figure2", "figure4")


def test_each_has_json_and_csv_and_all_have_one_page(everything, tmp_path):
    """Every result with rows has JSON and CSV files; all share one page, which loads nothing."""
    shown = [replace(one, models=("./models/mine/", "org/b")) for one in everything.values()]
    paths = write(shown, tmp_path)
    names = [f"{one.name}-mine+b{end}" for one in shown if one.rows for end in (".json", ".csv")]
    assert [path.name for path in paths] == [*names, "all-mine+b.html"]
    table = everything["table2"]
    data = json.loads((tmp_path / "table2-mine+b.json").read_text())
    assert (data["rows"], data["kind"]) == (list(table.rows), "reproduction")
    first, *_ = csv.DictReader((tmp_path / "table2-mine+b.csv").open())
    assert first == {name: str(value) for name, value in table.rows[0].items()}
    page = " ".join(paths[-1].read_text().split())
    assert all(f'id="{name}"' in page for name in NAMES)
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    assert "Lists by cs-stratified, k 3, up to 6 items to search on, up to 12 report items" in page
    assert write([everything["table9"]], tmp_path)[-1].name == "table9-three-layers.html"


def test_text_is_escaped_and_a_table_without_rows_says_so():
    """Names of models and tasks are escaped; a table without rows gives its note."""
    bad = "<script>alert(1)</script>"
    row = {"model": bad, "task": bad, "drop": 0.5, "drop_low": 0.4, "drop_high": 0.6}
    full = Reproduction("table2", (bad,), (row,), SETTINGS, (bad,))
    page = render_page([full, Reproduction("table3", (bad,), (), SETTINGS, ("no two tasks",))])
    assert bad not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Nothing to show." in page
    assert "no two tasks" in page


@pytest.mark.parametrize("name", DRAWN)
def test_two_models_have_a_figure_each(everything, name):
    """Every figure is drawn for each model; the caption names the model."""
    shown = everything[name]
    others = tuple({**row, "model": "<b>other"} for row in shown.rows)
    figures = draw(replace(shown, models=(*shown.models, "<b>other"), rows=(*shown.rows, *others)))
    models = [figure.caption.split(": ")[0] for figure in figures]
    assert models == ["random/three-layers", "<b>other"]
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(figure.svg().startswith("<svg") for figure in figures)


def test_points_are_the_drops(everything):
    """A panel's points are the drops of its task, with the ends of the intervals from k = 1 on."""
    shown = everything["figure2"]
    panels = draw(shown)[0].chart
    for name, chart in zip(panels.titles, panels.charts, strict=True):
        rows = [row for row in shown.rows if row["task"] == name]
        for (k, point), row in zip(chart.lines[0].points, rows, strict=True):
            drawn = (point.value, point.low, point.high) if k else (point,)
            columns = ("drop", "drop_low", "drop_high")[: len(drawn)]
            assert (k, drawn) == (row["k"], pytest.approx([100 * row[name] for name in columns]))
    assert draw(everything["table2"]) == []
