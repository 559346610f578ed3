"""Task files that cannot be read, which lm-eval skips silently."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broca.errors import first_line

_NAMES = re.compile(r"^\s*(?:-\s*)?(?:task|group):\s*[\"']?([\w.:-]+)", re.MULTILINE)


@dataclass(frozen=True)
class BrokenFile:
    """A YAML file that cannot be read.

    Attributes:
        names: Tasks and groups that it probably defines.
        message: The error and its place.
    """

    names: frozenset[str]
    message: str


def broken_files(folder: Path) -> tuple[BrokenFile, ...]:
    """Returns the YAML files of a folder that cannot be read, in the order of their names."""
    from lm_eval.tasks._yaml_loader import load_yaml

    broken = []
    for path in sorted(folder.rglob("*.yaml")):
        try:
            wrong = _misnamed(load_yaml(path, resolve_func=False, recursive=True))
        except Exception as error:  # noqa: BLE001  # a file may hold anything
            wrong = _what(error)
        if wrong:
            message = f"task file '{path}' cannot be read: {wrong}; correct it"
            broken.append(BrokenFile(frozenset(_NAMES.findall(_text(path))), message))
    return tuple(broken)


def _misnamed(content: dict[str, Any]) -> str:
    """Returns the error in the names of a file; empty if there is none."""
    key = "group" if "group" in content else "task"
    if key in content and not (isinstance(content[key], str) and content[key].strip()):
        return f"its '{key}' is {content[key]!r}, where a name in quotes is needed"
    tags = content.get("tag")
    for tag in tags if isinstance(tags, list) else [tags]:
        if tag and not isinstance(tag, str):
            return f"its 'tag' is {tag!r}, where a name in quotes is needed"
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # a folder, or not readable: the message says so


def _what(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or first_line(error)
    return problem if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
