"""A repeated table or figure of the paper as a result."""

import json

import pytest

import broca
from broca.errors import BadInput
from broca.results.reproduction import Reproduction


def make_reproduction():
    """Returns a reproduction whose second row has a column that the first lacks."""
    rows = ({"model": "m", "drop": 0.5}, {"model": "m", "drop": 0.25, "published": 0.25})
    return Reproduction("table2", ("m",), rows, {"k": 5}, ("a note",), "what heads cost")


def test_every_row_has_every_column():
    """A line has None where its row has no value."""
    assert make_reproduction().columns == ("model", "drop", "published")
    assert make_reproduction().records()[0] == {"model": "m", "drop": 0.5, "published": None}


def test_files_of_schema_1_are_read(tmp_path):
    """They recorded no kind and are known by their keys, under any name and in their folder."""
    file = tmp_path / "table2-m.json"
    old = {
        "name": "table2", "models": ["m"], "rows": [{"model": "m", "drop": 0.5}],
        "settings": {"k": 5}, "notes": [], "shows": "what heads cost", "broca": "0.1",
        "schema": 1,
    }  # fmt: skip
    file.write_text(json.dumps(old))
    result = broca.read(file)
    assert result == broca.read(tmp_path)
    assert (result.rows, result.broca) == (({"model": "m", "drop": 0.5},), "0.1")
    file.write_text(json.dumps({**old, "more": 1}))
    with pytest.raises(BadInput, match="is not a reproduction of broca"):
        broca.read(file)
