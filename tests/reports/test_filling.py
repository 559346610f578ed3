"""Templates: data within script elements cannot end them."""

import json

from broca.reports.filling import Contents, _as_data


def test_sections_are_noted_in_their_order():
    """The title is given back, so that it is written where it is noted."""
    contents = Contents()
    assert contents.add("one", "First") == "First"
    contents.add("two", "Second")
    assert contents.sections == [("one", "First"), ("two", "Second")]


def test_data_stays_data():
    """A closing tag within JSON is the same text when it is read."""
    text = json.dumps({"name": "</script><b>&amp;"})
    shown = str(_as_data(text))
    assert "<" not in shown
    assert json.loads(shown) == json.loads(text)
