"""The library speaks of parameters; only the command line writes them as flags."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "broca"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")

COMMAND = re.compile(r"`broca [^`]*`")
"""A command of broca as it is typed, which may be named anywhere."""

PROGRAMS = {"tasks/sandbox/isolation.py": "bwrap", "executors/ray.py": "ray"}
"""Files that hold flags of a program that is started, and the program."""

FILES = sorted(file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] != "cli")


def strings_of(file):
    """The strings of a file, docstrings among them, with their lines; what is formatted is `{}`."""
    inner = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            yield node.lineno, str(node.value)


def flags_in(file):
    """The flags in the strings of a file, with their lines."""
    for line, text in strings_of(file):
        for flag in FLAG.findall(COMMAND.sub("", text)):
            yield f"line {line}: {flag}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_string_speaks_of_flags(file):
    """A caller of Python has none; the command line turns `rows` into `--rows`."""
    place = file.relative_to(SOURCE)
    if str(place) in PROGRAMS:
        assert PROGRAMS[str(place)] in file.read_text()
    else:
        assert not list(flags_in(file))
