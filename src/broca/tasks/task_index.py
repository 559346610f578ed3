"""Names of the tasks in a folder of lm-eval YAML files, without parsing the files.

lm-eval has fourteen thousand task files, and parsing them takes half a minute. A few lines define
their names: `task`, `group`, `tag`, `class` and `include`. These are read from the text; a file
with an unusual form of these lines is parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_KEYS = ("task", "group", "tag", "class", "include")
_LINE = re.compile(
    rf"^([\"']?)({'|'.join(_KEYS)})\1[ \t]*:(?=[ \t\r\n]|\Z)[ \t]*"
    r"([^\r\n]*)((?:\r?\n[ \t]*-[ \t][^\r\n]*)*)",
    re.MULTILINE,
)
_ANYWHERE = re.compile(r"\b(?:task|group|class|include)\b")
_SCALAR = re.compile(r"([A-Za-z_.][\w./+@()-]*)|\"([^\"\\]*)\"|'([^']*)'")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|\.nan|[-+]?\.?(?:inf|\d.*)", re.IGNORECASE)
_IGNORED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}


class _NotPlain(Exception):
    """The file states a name in a form that needs a parser."""


@dataclass(frozen=True)
class _Stated:
    """The names that a file states, merged with those of the file that it includes."""

    values: Mapping[str, Any]

    @property
    def name(self) -> str | None:
        """The task or group that the file defines, by lm-eval's rules; None if it defines none."""
        for key, name_key in (("class", "task"), ("group", "group"), ("task", "task")):
            if key in self.values:
                name = self.values.get(name_key)
                return name if isinstance(name, str) else None
        return None

    @property
    def is_group(self) -> bool:
        """Whether the file defines a group."""
        return "group" in self.values and "class" not in self.values

    @property
    def tags(self) -> list[str]:
        """The tags of the task that the file defines."""
        tags = self.values.get("tag") or []
        return [tags] if isinstance(tags, str) else list(tags)


class TaskIndex:
    """The names that a folder of task files defines, as lm-eval's `TaskManager` finds them.

    Args:
        folder: The folder, searched with all folders in it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._read: dict[str, _Stated | None] = {}
        self._texts: dict[str, dict[str, Any]] = {}

    @cached_property
    def _contents(self) -> tuple[dict[str, tuple[str, ...]], frozenset[str], frozenset[str]]:
        """The files of every name, the groups and the tags."""
        files: dict[str, tuple[str, ...]] = {}
        tagged: dict[str, list[str]] = {}
        groups: list[str] = []
        for path in sorted(_yaml_files(self.folder)):
            stated = self._stated(path)
            name = None if stated is None else stated.name
            if stated is None or name is None or name in files:
                continue
            files[name] = (path,)
            if stated.is_group:
                groups.append(name)
                continue
            for tag in stated.tags:
                tagged.setdefault(tag, []).append(path)
        tags = {tag: tuple(paths) for tag, paths in tagged.items() if tag not in files}
        return files | tags, frozenset(groups), frozenset(tags)

    @property
    def names(self) -> tuple[str, ...]:
        """Tasks, groups and tags, in alphabetical order."""
        return tuple(sorted(self._contents[0]))

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups, in alphabetical order."""
        return tuple(sorted(self._contents[1]))

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags, in alphabetical order."""
        return tuple(sorted(self._contents[2]))

    def __contains__(self, name: str) -> bool:
        return name in self._contents[0]

    def folders_of(self, names: Iterable[str]) -> tuple[Path, ...]:
        """Returns the folders of the tasks that some names mean, members of groups included.

        Args:
            names: Tasks, groups or tags; names that are not in the index are left out.

        Returns:
            Folders of which none contains another, for `TaskManager(include_path=...)`. They are in
            the reverse order of their paths, because the last folder that defines a name counts
            there. If the tasks of a tag are in several folders, their common parent is returned,
            because lm-eval uses the tag of the last folder only.
        """
        files, groups, tags = self._contents

        def members(name: str) -> list[str]:
            return members_of(_parsed(files[name][0]).get("task")) if name in groups else []

        parents = {
            name: {Path(path).parent for path in files[name]}
            for name in with_members(names, members) & files.keys()
        }
        folders = set[Path]().union(*parents.values())
        if any(len(parents[name]) > 1 for name in tags & parents.keys()):
            return (Path(os.path.commonpath(folders)),)
        outermost = [folder for folder in folders if not folders & set(folder.parents)]
        return tuple(sorted(outermost, key=Path.as_posix, reverse=True))

    def _stated(self, path: str) -> _Stated | None:
        """Returns the names that a file states; None if it cannot be read."""
        if path not in self._read:
            try:
                self._read[path] = _Stated(self._merged(path, ()))
            except _NotPlain:
                try:
                    self._read[path] = _Stated(_parsed(path))
                except Exception:  # noqa: BLE001  # a file may hold anything; lm-eval skips it too
                    self._read[path] = None
            except (OSError, UnicodeDecodeError):
                self._read[path] = None
        return self._read[path]

    def _merged(self, path: str, above: Sequence[str]) -> dict[str, Any]:
        """Merges a file's names over those of the file that it includes."""
        if path in above:
            raise _NotPlain
        if path not in self._texts:
            self._texts[path] = _plain(path)
        values = dict(self._texts[path])
        included = values.pop("include", None)
        if included is None:
            return values
        included_path = os.path.normpath(os.path.join(os.path.dirname(path), included))
        return {**self._merged(included_path, (*above, path)), **values}


def _plain(path: str) -> dict[str, Any]:
    """Reads the names that a file itself states, without parsing it.

    Raises:
        _NotPlain: A parser is needed.
    """
    with open(path, "rb", buffering=0) as file:
        text = file.read().decode("utf-8")
    values: dict[str, Any] = {}
    for _, key, value, members in _LINE.findall(text):
        if key in values:
            raise _NotPlain
        if key == "class":
            values[key] = ""
        elif value and not members:
            values[key] = _scalar(value)
        elif key == "tag" and members and not _without_comment(value):
            lines = members.strip().splitlines()
            values[key] = [_scalar(line.strip().removeprefix("-").strip()) for line in lines]
        elif key == "task":
            values[key] = None  # the members of a group
        else:
            raise _NotPlain
    if "task" in values and values["task"] is None and "group" not in values:
        raise _NotPlain
    if not values and _ANYWHERE.search(text):
        raise _NotPlain
    return values


def members_of(members: Any) -> list[str]:
    """Returns the names in the `task` list of a group, with those of nested groups."""
    names: list[str] = []
    for member in members if isinstance(members, list) else [members]:
        if isinstance(member, str):
            names.append(member)
        elif isinstance(member, dict):
            names += [member[key] for key in ("task", "group") if isinstance(member.get(key), str)]
            if isinstance(member.get("task"), list):
                names += members_of(member["task"])
    return names


def with_members(names: Iterable[str], members: Callable[[str], Iterable[str]]) -> set[str]:
    """Returns names with those of all members of the groups among them.

    Args:
        names: Tasks, groups or tags.
        members: Returns the members of a group, groups among them; none for other names.
    """
    waiting, visited = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in visited:
            visited.add(name)
            waiting += members(name)
    return visited


def _yaml_files(folder: Path) -> Iterator[str]:
    if _IGNORED_FOLDERS & set(folder.parts):
        return
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _IGNORED_FOLDERS]
        yield from (f"{place}{os.sep}{name}" for name in files if name.endswith(".yaml"))


def _without_comment(text: str) -> str:
    return (_COMMENT.sub("", text) if "#" in text else text).strip()


def _scalar(text: str) -> str:
    """Reads a plain or quoted text.

    Raises:
        _NotPlain: The text has another form.
    """
    match = _SCALAR.fullmatch(_without_comment(text))
    if match is None or (match[1] and _NO_TEXT.fullmatch(match[1])):
        raise _NotPlain
    return next(part for part in match.groups() if part is not None)


def _parsed(path: str) -> dict[str, Any]:
    """Parses a file as lm-eval does, with the file that it includes."""
    from lm_eval.tasks._yaml_loader import load_yaml

    content: dict[str, Any] = load_yaml(path, resolve_func=False, recursive=True)
    return content
