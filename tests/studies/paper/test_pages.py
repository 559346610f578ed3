"""The files of a reproduction: JSON, CSV and a page with its figures."""

import csv
import importlib.util
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from broca.results.runs import Reproduction
from broca.studies.paper import NAMES
from broca.studies.paper.pages import as_csv, draw, render_page, write

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "paper_figures.py"
SETTINGS = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}
DRAWN = ("table2", "table3", "table4", "table6", "table7", "figure1", "figure2", "figure4", "gqa")


def test_each_has_json_and_csv_and_all_have_one_page(everything, tmp_path):
    """Every result with rows has JSON and CSV files, all share one page, named for the model."""
    shown = [replace(one, models=("./models/mine/", "org/b")) for one in everything.values()]
    paths = write(shown, tmp_path)
    names = [f"{one.name}-mine+b{end}" for one in shown if one.rows for end in (".json", ".csv")]
    assert [path.name for path in paths] == [*names, "all-mine+b.html"]
    table = everything["table2"]
    data = json.loads((tmp_path / "table2-mine+b.json").read_text())
    assert (data["rows"], data["kind"]) == (list(table.rows), "reproduction")
    assert (tmp_path / "table2-mine+b.csv").read_text() == as_csv(table)
    assert write([everything["table9"]], tmp_path)[-1].name == "table9-three-layers.html"


def test_csv_has_a_column_for_whatever_a_row_has():
    """Columns are ordered by first appearance, missing cells are empty and text is quoted."""
    rows = ({"model": "m", "drop": 0.5}, {"model": "m", "task": 'b,"c', "published": 0.25})
    first, second = csv.DictReader(io.StringIO(as_csv(Reproduction("table2", ("m",), rows, {}))))
    assert list(first) == ["model", "drop", "task", "published"]
    assert (first["drop"], first["published"]) == ("0.5", "")
    assert (second["task"], second["published"]) == ('b,"c', "0.25")


def test_one_page_holds_all_and_needs_nothing_from_outside(everything):
    """The page has a section for each name, states its settings and loads nothing."""
    page = " ".join(render_page(list(everything.values())).split())
    assert page.startswith("<!doctype html>")
    assert [f'id="{name}"' in page for name in NAMES] == [True] * len(NAMES)
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    assert "scores 0.000 on gsm8k" in page
    assert "Lists by cs-stratified, k 3, up to 6 items to search on, up to 12 report items" in page


def test_columns_without_anything_are_left_out():
    """Columns without a value are left out, and numbers are short."""
    rows = (
        {"model": "m", "heads": "", "drop": 0.0, "size": 1220864, "shared": None},
        {"model": "m", "heads": "L0H1", "drop": 0.12345, "size": 1, "shared": None},
    )
    page = render_page([Reproduction("table9", ("m",), rows, SETTINGS)])
    table = page[page.index("<table>") : page.index("</table>")]
    assert "0.123<" in table
    assert "1,220,864" in table
    assert "shared" not in table


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
    for (_, point), (_, other), row in zip(task.points, general.points, shown.rows, strict=True):
        drawn = (point.value, point.low, point.high, other)
        columns = ("drop", "drop_low", "drop_high", "general_drop")
        assert drawn == pytest.approx([100 * row[column] for column in columns])


def test_a_heatmap_shows_what_is_lost_without_each_head():
    """Cells are drops against the intact row, on one scale; tables without drops are not drawn."""
    intact = {"model": "m", "head": "none", "a": 1.0, "b": 0.5, "mean": 0.75}
    head = {"model": "m", "head": "L0H1", "a": 0.25, "b": 0.5, "mean": 0.375}
    (figure,) = draw(Reproduction("table7", ("m",), (intact, head), {}))
    chart = figure.chart
    assert (chart.rows, chart.columns, chart.values) == (("L0H1",), ("a", "b"), ((-75, 0),))
    assert chart.span == 100
    assert draw(Reproduction("table7", ("m",), (intact,), {})) == []
    assert draw(Reproduction("table9", ("m",), ({"model": "m", "task": "a"},), {})) == []


def test_the_pictures_of_the_docs_are_drawn_from_the_files(everything, tmp_path):
    """The script draws each figure, byte-identical when drawn again; none from an empty folder."""
    spec = importlib.util.spec_from_file_location("paper_figures", SCRIPT)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert pictures.draw(tmp_path, tmp_path) == []
    write(list(everything.values()), tmp_path)
    paths = pictures.draw(tmp_path, tmp_path)
    assert [path.name for path in paths] == [f"figure{number}.png" for number in (1, 2, 3, 4)]
    first = [path.read_bytes() for path in paths]
    assert all(content.startswith(b"\x89PNG") for content in first)
    assert [path.read_bytes() for path in pictures.draw(tmp_path, tmp_path)] == first
