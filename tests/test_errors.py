"""Errors are documented, and whatever is read from a file ends in one of them."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports.test_page import make_result

from broca.components import Component, ComponentSet
from broca.errors import EXIT_CODES, BrocaError, all_errors, first_line, table
from broca.reports import render_html
from broca.results.codec import decode, encode
from broca.results.localization import Localization
from broca.runs.folder import RunFolder

DOCS = Path(__file__).parent.parent / "docs" / "errors.md"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def test_docs_hold_the_table():
    """Every error with cause, remedy and exit code."""
    assert table() in DOCS.read_text()


def test_docs_hold_the_exit_codes():
    """All that the command line returns, and no error has another."""
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in DOCS.read_text()
    assert {error.exit_code for error in all_errors()} == set(EXIT_CODES) - {0}


@pytest.mark.parametrize("error", all_errors())
def test_every_error_says_what_to_do(error):
    """A sentence of its own, and a cause."""
    assert error.remedy.endswith(".")
    assert error.__doc__
    if error is not BrocaError:
        assert error.remedy != BrocaError.remedy
    assert error.exit_code in (1, 2, 130)


def places(data, path=()):
    """Paths of every value in nested dictionaries and lists."""
    yield path
    if isinstance(data, list):
        data = dict(enumerate(data))
    for key, value in data.items() if isinstance(data, dict) else ():
        yield from places(value, (*path, key))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_changed_result_is_read_or_refused(data):
    """One value replaced by anything, or left out: a page, or one line."""
    content = json.loads(encode(make_result()))
    path = data.draw(st.sampled_from([one for one in places(content) if one]))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[path[-1]] = data.draw(VALUES)
    else:
        del inner[path[-1]]
    with contextlib.suppress(BrocaError):
        result = decode(Localization, json.dumps(content))
        assert encode(decode(Localization, encode(result))) == encode(result)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError(" no file.\nlook at the docs"), "no file"),
        (OSError(2, "not there"), "[Errno 2] not there"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_error_of_another_package_becomes_part_of_a_line(error, said):
    """Its first line without the full stop; its class where it says nothing."""
    assert first_line(error) == said


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40) | VALUES.map(json.dumps))
def test_any_text_as_result_is_refused(text):
    """No text is a result by chance."""
    with pytest.raises(BrocaError):
        decode(Localization, text)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": 1e999}'])
def test_files_of_any_bytes_are_refused(content, tmp_path):
    """Not UTF-8, nested too deep, numbers too large."""
    for name in ("result.json", "reproduce.json"):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BrocaError):
        Localization.read(tmp_path)
    with pytest.raises(BrocaError):
        RunFolder.read(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30) | st.lists(st.text(max_size=8), max_size=4))
def test_any_text_as_a_list_of_heads_is_read_or_refused(names):
    """Columns within the set, or one line."""
    components = ComponentSet(tuple(Component(0, "head", number) for number in range(4)))
    with contextlib.suppress(BrocaError):
        assert all(0 <= column < 4 for column in components.columns(names))


def test_a_page_is_made_of_what_was_read():
    """The report of a result that went through JSON is the report of the result."""
    result = make_result()
    assert render_html(decode(Localization, encode(result))) == render_html(result)
