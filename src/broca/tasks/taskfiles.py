"""Task files that cannot be read; lm-eval skips them without a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_NAMES = re.compile(r"^\s*(?:-\s*)?(?:task|group):\s*[\"']?([\w.:-]+)", re.MULTILINE)


@dataclass(frozen=True)
class BrokenFile:
    """A YAML file that cannot be read.

    Attributes:
        names: Tasks and groups that it seems to define.
        message: What is wrong with it and where.
    """

    names: frozenset[str]
    message: str


def broken_files(folder: Path) -> tuple[BrokenFile, ...]:
    """Returns the YAML files of a folder that cannot be read, in the order of their names."""
    import yaml
    from lm_eval.tasks._yaml_loader import load_yaml

    broken = []
    for path in sorted(folder.rglob("*.yaml")):
        try:
            load_yaml(path, resolve_func=False, recursive=True)
        except (yaml.YAMLError, OSError, ValueError, TypeError) as error:
            text = path.read_text(encoding="utf-8", errors="replace")
            broken.append(
                BrokenFile(
                    frozenset(_NAMES.findall(text)),
                    f"task file '{path}' cannot be read: {_what(error)}; correct it",
                )
            )
    return tuple(broken)


def _what(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return problem if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
