"""Templates list their sections, and data within script elements cannot end them."""

import json

from broca.results.pages.template import Contents, _as_data, _stated


def test_sections_are_noted_in_their_order():
    """`add` returns the title, so that a template can write it in place."""
    contents = Contents()
    assert contents.add("one", "First") == "First"
    contents.add("two", "Second")
    assert contents.sections == [("one", "First"), ("two", "Second")]


def test_data_stays_data():
    """JSON with a closing tag contains no `<` and decodes to the same text."""
    text = json.dumps({"name": "</script><b>&amp;"})
    shown = str(_as_data(text))
    assert "<" not in shown
    assert json.loads(shown) == json.loads(text)


def test_settings_that_were_left_open_are_not_stated():
    """Unset values are left out, numbers are short, and zeros are stated."""
    settings = {"rows": 1598, "worth_error": 0.06969337, "count": None, "fields": "", "others": []}
    assert _stated(settings) == ["rows 1598", "worth error 0.06969"]
    assert _stated({"sigma": 0.0, "seed": 0, "keep": False}) == ["sigma 0", "seed 0", "keep False"]
