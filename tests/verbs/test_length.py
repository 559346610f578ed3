"""Each verb is one short file; the packages do its steps."""

from pathlib import Path

import pytest

import broca.verbs

MOST_LINES = 120
FOLDER = Path(broca.verbs.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def test_the_files_are_found():
    """The search for files finds verbs and neuron verbs."""
    names = {str(file.relative_to(FOLDER)) for file in FILES}
    assert {"localize.py", "compare.py", "export.py", "neurons/locate.py"} <= names


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_a_verb_is_short(file):
    """A verb's file has fewer than 120 lines, with docstrings and imports."""
    assert len(file.read_text(encoding="utf-8").splitlines()) < MOST_LINES
