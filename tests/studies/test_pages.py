"""The files of a reproduction: JSON, CSV and a page."""

import csv
import json
import re
from dataclasses import replace

import pytest

from broca.results.runs import Reproduction
from broca.studies import NAMES
from broca.studies.pages import render_page, write

SETTINGS = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}


@pytest.mark.long
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
