"""Strings of the library name parameters; only the command line names flags."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "broca"
FLAG = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z-]*\b(?!:)")
"""A flag of a command, which is no variable of a style sheet."""

COMMAND = re.compile(r"`broca [^`]*`")
"""A broca command in backticks, which any string may contain."""

PROGRAMS = {"tasks/sandbox.py": "bwrap", "executors/ray.py": "ray", "models/gguf_files.py": "pip"}
"""Files that hold flags of another program, and that program."""

FILES = sorted(
    file
    for file in SOURCE.rglob("*.py")
    if file.relative_to(SOURCE).parts[0] not in ("cli", "options")
)

PAGES = sorted(file for ending in ("js", "j2") for file in SOURCE.rglob(f"*.{ending}"))
"""Scripts and templates of pages, which callers in Python see too."""


def strings_of(file):
    """Yields the text of every string and docstring, with `{}` for formatted values."""
    inner = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            yield str(node.value)


def test_no_string_or_page_speaks_of_flags():
    """No string of the library names a flag, because callers in Python have none.

    A page names flags only within a whole command.
    """
    for file in FILES:
        program = PROGRAMS.get(str(file.relative_to(SOURCE)))
        texts = [COMMAND.sub("", text) for text in strings_of(file)]
        if program is None:
            assert not [flag for text in texts for flag in FLAG.findall(text)], file
        else:
            assert any(program in text for text in texts)
    for file in PAGES:
        assert not FLAG.findall(COMMAND.sub("", file.read_text())), file
