"""Strings of the library name parameters; only the command line names flags."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "broca"
FLAG = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z-]*")
"""A flag of a command, which is no variable of a style sheet."""

COMMAND = re.compile(r"`broca [^`]*`")
"""A broca command in backticks, which any string may contain."""

PROGRAMS = {"tasks/sandbox.py": "bwrap", "executors/ray.py": "ray"}
"""Files that hold flags of another program, and that program."""

FILES = sorted(
    file
    for file in SOURCE.rglob("*.py")
    if file.relative_to(SOURCE).parts[0] not in ("cli", "options")
)

PAGES = sorted(file for ending in ("js", "j2") for file in SOURCE.rglob(f"*.{ending}"))
"""Scripts and templates of pages, which callers in Python see too."""


def strings_of(file):
    """Yields the line and text of every string and docstring, with `{}` for formatted values."""
    inner = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            yield node.lineno, str(node.value)


def flags_in(file):
    """Yields every flag in the strings of a file, with its line."""
    for line, text in strings_of(file):
        for flag in FLAG.findall(COMMAND.sub("", text)):
            yield f"line {line}: {flag}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_string_speaks_of_flags(file):
    """No string of the library names a flag, because callers in Python have none."""
    place = file.relative_to(SOURCE)
    if str(place) in PROGRAMS:
        assert PROGRAMS[str(place)] in file.read_text()
    else:
        assert not list(flags_in(file))


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_page_speaks_of_flags(file):
    """A page names flags only within a whole command."""
    assert not FLAG.findall(COMMAND.sub("", file.read_text()))
