"""The pictures of the docs are drawn from the JSON files of `broca reproduce`."""

import importlib.util
import json
from pathlib import Path

import pytest
from broca.studies.paper.writing import write

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "paper_figures.py"


@pytest.fixture(scope="module")
def pictures():
    """The script `benchmarks/paper_figures.py` as a module."""
    spec = importlib.util.spec_from_file_location("paper_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_figure_is_drawn(pictures, everything, tmp_path):
    """Each figure is drawn with the rows' numbers and is byte-identical when drawn again."""
    write(list(everything.values()), tmp_path, "m")
    paths = pictures.draw(tmp_path, tmp_path)
    assert [path.name for path in paths] == [f"figure{number}.png" for number in (1, 2, 3, 4)]
    first = [path.read_bytes() for path in paths]
    assert all(content.startswith(b"\x89PNG") for content in first)
    assert [path.read_bytes() for path in pictures.draw(tmp_path, tmp_path)] == first
    models = pictures.rows_of(tmp_path / "figure2-m.json")
    rows = json.loads((tmp_path / "figure2-m.json").read_text())["rows"]
    lines = pictures.sweeps(models).axes[0].lines
    task_rows = [row for row in rows if row["task"] == rows[0]["task"]]
    assert list(lines[0].get_ydata()) == [100 * row["drop"] for row in task_rows]


def test_an_empty_folder_has_no_pictures(pictures, tmp_path):
    """No picture is drawn from an empty folder."""
    assert pictures.draw(tmp_path, tmp_path) == []
