"""The names that YAML files of lm-eval tasks define, and what they stand for.

lm-eval has fourteen thousand task files; parsing all of them takes ten seconds and more. For a name
of lm-eval, only those files are parsed that state it.
"""

from __future__ import annotations

import os
import re
from collections import UserDict, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import lm_eval.tasks
from lm_eval.tasks._index import TaskIndex
from lm_eval.tasks._yaml_loader import load_yaml

from broca.errors import first_line

_STATED = re.compile(
    r"""^[ \t{]*(?:-[ \t]+)?["']?(?:task|group|tag)["']?[ \t]*:([ \t].*)$"""
    r"""|^[ \t]*-[ \t]+["']?([^\s"'#]+)["']?[ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)
_INCLUDED = re.compile(r"^include:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_WORD = re.compile(r"[\w.:/+@()-]+")


BrokenFile = tuple[set[str], str]
"""What a file that cannot be read probably defines, and the error with its place."""


def read_task_files(paths: Iterable[Path]) -> tuple[dict[str, Any], list[BrokenFile]]:
    """Reads what files define, by lm-eval's rules: of two definitions, the first counts.

    Returns:
        lm-eval's entries of tasks, groups and tags by name, for `TaskManager.task_index`, and the
        files that cannot be read, which lm-eval skips silently.
    """
    entries: dict[str, Any] = {}
    broken: list[BrokenFile] = []
    for path in sorted(paths, key=Path.as_posix):
        if not {"__pycache__", ".ipynb_checkpoints"}.isdisjoint(path.parts):
            continue
        try:
            content = load_yaml(path, resolve_func=False, recursive=True)
            fault = _misnamed(content)
            if not fault and content.keys() & {"class", "group", "task"}:
                TaskIndex.process_cfg(content, path, entries)
        except Exception as error:  # noqa: BLE001  # a file may hold anything
            mark = getattr(error, "problem_mark", None)
            fault = getattr(error, "problem", None) or first_line(error)
            if mark is not None:
                fault = f"line {mark.line + 1}, column {mark.column + 1}: {fault}"
        if fault:
            message = f"task file '{path}' cannot be read: {fault}; correct it"
            broken.append((_names_in(path)[0], message))
    return entries, broken


def _misnamed(content: dict[str, Any]) -> str:
    """Returns the error in the names of a file; empty if there is none."""
    key, tags = "group" if "group" in content else "task", content.get("tag") or []
    names = [(key, content[key])] if key in content else []
    names += [("tag", tag) for tag in (tags if isinstance(tags, list) else [tags]) if tag]
    for key, name in names:
        if not isinstance(name, str) or not name.strip():
            return f"its '{key}' is {name!r}, where a name in quotes is needed"
    return ""


def _names_in(path: str | Path) -> tuple[set[str], list[str]]:
    """Returns what a file's text may define or list, and the files that it includes."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return set(), []  # a folder, or not readable
    stated = " ".join(f"{names} {member}" for names, member in _STATED.findall(text))
    return set(_WORD.findall(stated)), _INCLUDED.findall(text)


@cache
def _harness_files() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Returns the files of lm-eval that state a name, and those that include a file."""
    stating: dict[str, list[str]] = defaultdict(list)
    including: dict[str, list[str]] = defaultdict(list)
    for folder, _, names in os.walk(Path(lm_eval.tasks.__file__).parent):
        for name in names:
            if name.endswith(("yaml", "yml")) or "." not in name:
                path = f"{folder}{os.sep}{name}"
                words, includes = _names_in(path)
                for word in words:
                    stating[word].append(path)
                for included in includes:
                    including[os.path.normpath(os.path.join(folder, included))].append(path)
    return dict(stating), dict(including)


def harness_names() -> list[str]:
    """Returns what may be a name in lm-eval, to propose one for a name that is not."""
    return list(_harness_files()[0])


@cache
def harness_entry(name: str) -> Any:
    """Returns lm-eval's entry of one of its own names; None if it has no such name."""
    stating, including = _harness_files()
    waiting, found = list(stating.get(name, ())), set[str]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += including.get(path, ())
    entries, _ = read_task_files(Path(path) for path in found if path.endswith(".yaml"))
    return entries.get(name)


class TaskEntries(UserDict[str, Any]):
    """lm-eval's entries by name, which are looked up when lm-eval asks for them.

    Args:
        find: Returns the entry of a name; None if it has none.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        super().__init__()
        self._find = find

    def __contains__(self, name: object) -> bool:
        """Whether a name has an entry."""
        if name not in self.data and (entry := self._find(str(name))) is not None:
            self.data[str(name)] = entry
        return name in self.data

    def __missing__(self, name: str) -> Any:
        """Looks an entry up."""
        if name in self:
            return self.data[name]
        raise KeyError(name)
