"""The names that YAML files of lm-eval tasks define, and what they stand for.

lm-eval has fourteen thousand task files; parsing all of them takes ten seconds and more. For a name
of lm-eval, only those files are parsed that state it.
"""

import os
import re
import reprlib
from collections import UserDict, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import lm_eval.tasks
from lm_eval.tasks._index import TaskIndex
from lm_eval.tasks._yaml_loader import load_yaml

from broca.errors import first_line

_KEY = r"""^[ \t{]*(?:-[ \t]+)?["']?(?:task|group|tag)["']?[ \t]*:"""
_MEMBER = r"^[ \t]*-[ \t]+"
_NAME = re.compile(rf"""{_KEY}[ \t]*["']?([\w.:/+@()-]+)""", re.MULTILINE)
_INCLUDED = re.compile(r"^include:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)


def read_task_files(paths: Iterable[Path]) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads what files define, by lm-eval's rules: of two definitions, the first counts.

    Returns:
        lm-eval's entries of tasks, groups and tags by name, for `TaskManager.task_index`, and the
        texts of the files that cannot be read, which lm-eval skips silently, with the error.
    """
    entries: dict[str, Any] = {}
    broken: dict[str, str] = {}
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
            place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
            fault = f"{place}{getattr(error, 'problem', None) or first_line(error)}"
        if fault:
            broken[_text(path)] = f"task file '{path}' cannot be read: {fault}; correct it"
    return entries, broken


def _misnamed(content: dict[str, Any]) -> str:
    """Returns the error in the names of a file; empty if there is none."""
    key, tags = "group" if "group" in content else "task", content.get("tag") or []
    names = [(key, content[key])] if key in content else []
    names += [("tag", tag) for tag in (tags if isinstance(tags, list) else [tags]) if tag]
    for key, name in names:
        if not isinstance(name, str) or not name.strip():
            return f"its '{key}' is {reprlib.repr(name)}, where a name in quotes is needed"
    return ""


def may_define(text: str, name: str) -> bool:
    """Whether the text of a file names a task, group or tag so, or lists this name."""
    if name not in text:
        return False
    stated = rf"""(?:{_KEY}.*|{_MEMBER}["']?)(?<![\w-]){re.escape(name)}(?![\w-])"""
    return re.search(stated, text, re.MULTILINE) is not None


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # a folder, or not readable


@cache
def _harness_files() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Returns the texts of lm-eval's task files, and the files that include each of them."""
    texts: dict[str, str] = {}
    including: dict[str, list[str]] = defaultdict(list)
    for folder, _, names in os.walk(Path(lm_eval.tasks.__file__).parent):
        for name in names:
            if name.endswith(("yaml", "yml")) or "." not in name:
                path = os.path.join(folder, name)
                texts[path] = _text(path)
                for included in _INCLUDED.findall(texts[path]):
                    including[os.path.normpath(os.path.join(folder, included))].append(path)
    return texts, dict(including)


def harness_names() -> list[str]:
    """Returns what may be a name in lm-eval, to propose one for a name that is not."""
    return [name for text in _harness_files()[0].values() for name in _NAME.findall(text)]


@cache
def harness_entry(name: str) -> Any:
    """Returns lm-eval's entry of one of its own names; None if it has no such name."""
    texts, including = _harness_files()
    waiting = [path for path, text in texts.items() if may_define(text, name)]
    found = set[str]()
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
        return self._find(str(name)) is not None

    def __getitem__(self, name: str) -> Any:
        """Returns the entry of a name."""
        if (entry := self._find(name)) is None:
            raise KeyError(name)
        return entry
