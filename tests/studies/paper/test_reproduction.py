"""JSON and CSV of a reproduction."""

import csv
import io
import json

from broca.studies.paper import NAMES, Reproduction, as_csv, as_json

SHOWN = Reproduction(
    "table2",
    ("m",),
    ({"model": "m", "task": "a", "drop": 0.5}, {"model": "m", "task": 'b,"c', "published": 0.25}),
    {"k": 5},
    ("a note",),
    NAMES["table2"],
    broca="0.1",
)


def test_json_holds_everything():
    """The JSON has the rows, settings and notes, and a sentence on what the table shows."""
    data = json.loads(as_json(SHOWN))
    assert data["rows"] == list(SHOWN.rows)
    assert (data["name"], data["models"], data["notes"]) == ("table2", ["m"], ["a note"])
    assert data["settings"] == {"k": 5}
    assert data["shows"].startswith("what the selected heads cost")
    assert (data["broca"], data["schema"], data["kind"]) == ("0.1", 2, "reproduction")


def test_csv_has_a_column_for_whatever_a_row_has():
    """Columns are ordered by first appearance, missing cells are empty and text is quoted."""
    assert SHOWN.columns == ("model", "task", "drop", "published")
    first, second = csv.DictReader(io.StringIO(as_csv(SHOWN)))
    assert (first["drop"], first["published"]) == ("0.5", "")
    assert (second["task"], second["published"]) == ('b,"c', "0.25")


def test_record_of_the_settings_says_how_it_was_made(everything):
    """The settings have every option except the journal's path, which changes no number."""
    settings = json.loads(as_json(everything["table9"]))["settings"]
    assert settings["method"] == "cs-stratified"
    assert (settings["rows"], settings["items"], settings["k"], settings["seed"]) == (600, 6, 3, 0)
    assert "gsm8k" in settings["tasks"]
    assert "journal" not in settings
