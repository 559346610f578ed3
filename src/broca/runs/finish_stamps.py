"""Recognizes a finished command by its options and by the sizes and times of the files it read.

A run that owns its folder writes this into its `reproduce.json`; commands that share a folder write
`finished.json`, one entry for each command.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from broca.results.files import write_beside

NAME = "finished.json"
_PACKAGES = ("broca", "torch", "transformers", "lm-eval", "datasets", "numpy", "scikit-learn")

Stamps = dict[str, list[int] | None]
"""By path: size and time of a file, number and checksum of the names in a folder, or an empty list
for a file that only has to exist."""


def stamps_of(folder: Path, sources: Sequence[Path], written: Sequence[Path]) -> Stamps:
    """Returns the stamps of the files that a result was computed from, and of the result.

    Pages only have to exist: other commands add their sections to a report.

    Args:
        folder: The out folder, which may be moved later.
        sources: The files that were read.
        written: The result's file, then its pages.
    """
    stamps = {str(path): _stamp(path) for path in sources}
    result, *pages = written
    stamps[str(result.relative_to(folder))] = _stamp(result)
    return stamps | {str(page.relative_to(folder)): [] for page in pages}


def unchanged(folder: Path, stamps: Stamps) -> bool:
    """Whether stamps are given and every file still has its stamp."""
    return bool(stamps) and all(
        (folder / path).exists() if stamp == [] else _stamp(folder / path) == stamp
        for path, stamp in stamps.items()
    )


def note_finished(
    folder: Path,
    options: Mapping[str, Any],
    sources: Sequence[Path] | None,
    written: Sequence[Path],
) -> None:
    """Records that a command in a shared folder has finished.

    Args:
        folder: The out folder.
        options: All options that determine the result, and the `verb`.
        sources: The files that the result was computed from; None if they are unknown.
        written: The result's file, then its pages.
    """
    entries = _read(folder)
    entries.pop(str(options["verb"]), None)
    if sources is not None:
        entries[str(options["verb"])] = {
            "options": as_read(options),
            "versions": versions(),
            "written": [str(path.relative_to(folder)) for path in written],
            "stamps": stamps_of(folder, sources, written),
        }
    write_beside(folder / NAME, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")


def finished_files(folder: Path, options: Mapping[str, Any]) -> tuple[Path, ...]:
    """Returns the files that the same command wrote if nothing has changed since, else none.

    Args:
        folder: The out folder.
        options: All options that determine the result, and the `verb`.
    """
    entry = _read(folder).get(str(options["verb"]), {})
    try:
        same_command = entry["options"] == as_read(options) and entry["versions"] == versions()
        written = tuple(folder / name for name in entry["written"])
        return written if same_command and unchanged(folder, entry["stamps"]) else ()
    except (KeyError, TypeError, AttributeError):  # no file, or a file that broca did not write
        return ()


def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    version_numbers = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            version_numbers[package] = version(package)
        except PackageNotFoundError:
            version_numbers[package] = "not installed"
    return version_numbers


def _read(folder: Path) -> dict[str, Any]:
    """The entries of a folder by verb; empty if it has no file that broca wrote."""
    try:
        entries = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def as_read(options: Mapping[str, Any]) -> Any:
    """Returns options as they are read back from JSON."""
    return json.loads(json.dumps(options))


def _stamp(path: Path) -> list[int] | None:
    """Size and time of a file, number and checksum of a folder's names; None if it is missing.

    The time of a folder is not used: Python adds `__pycache__` when it first imports from it.
    """
    try:
        if path.is_dir():
            names = sorted(name for name in os.listdir(path) if name != "__pycache__")
            return [len(names), zlib.crc32("\0".join(names).encode())]
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
