"""Errors are documented, and unreadable content raises one of them."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results.samples import make_comparison

import broca
from broca.components import Component, ComponentSet
from broca.errors import EXIT_CODES, BadInput, BrocaError
from broca.results.files import decode
from broca.results.localization import Localization
from broca.runs.folder import RunFolder
from broca.tasks import Catalog

DOCS = Path(__file__).parent.parent / "docs" / "errors.md"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def test_docs_hold_every_error_and_exit_code():
    """`docs/errors.md` has every error with cause, remedy and exit code, and all exit codes."""
    text = DOCS.read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    written = {row[0]: row for row in rows if len(row) == 4}
    assert all(f"| {code} | {meaning} |" in text for code, meaning in EXIT_CODES.items())
    errors, codes = [BrocaError], set()
    for error in errors:
        errors += error.__subclasses__()
        codes.add(error.exit_code)
        cause = " ".join(error.__doc__.split("\n\n")[0].split())
        assert written[error.__name__][1::2] == [cause, str(error.exit_code)]
        assert written[error.__name__][2].endswith(".")
    assert codes == set(EXIT_CODES) - {0}


def test_what_is_no_path_or_may_not_be_read_is_refused(tmp_path, monkeypatch):
    """A number, and a folder without the right to read it, are refused in one line."""
    readers = (broca.report, broca.view, broca.read, broca.inspect_journal, Catalog)
    for call in (*readers, broca.Workspace):
        with pytest.raises(BadInput, match=r"5 cannot be opened .*not '?int"):
            call(5)
    comparison = make_comparison()
    for call in (broca.verify, broca.stress, broca.replicate):
        with pytest.raises(BadInput, match=r"\A.* cannot be opened .*Comparison.*\Z"):
            call(comparison)
    with pytest.raises(BadInput, match=r"\Aa comparison cannot be compared"):
        broca.compare(comparison, comparison)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(BadInput, match=r"cannot be opened \(you may not read it\)"):
        broca.read(tmp_path)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40) | VALUES.map(json.dumps), st.text(max_size=30) | st.lists(st.text()))
def test_any_text_is_refused_or_read(text, names):
    """Any text is refused as a result; any names of heads give columns of the set, or an error."""
    with pytest.raises(BrocaError):
        decode(Localization, text)
    components = ComponentSet(tuple(Component(0, "head", number) for number in range(4)))
    with contextlib.suppress(BrocaError):
        assert all(0 <= column < 4 for column in components.columns(names))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": 1e999}'])
def test_files_of_any_bytes_are_refused(content, tmp_path):
    """Files that are not UTF-8, nested too deeply or with too large numbers are refused."""
    for name in ("result.json", "reproduce.json"):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BrocaError):
        Localization.read(tmp_path)
    with pytest.raises(BrocaError):
        RunFolder.read(tmp_path)
