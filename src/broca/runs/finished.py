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
"""Size and time of files by path, number and checksum of the names in a folder; an empty list for a
file that only has to be there."""


def stamps_of(folder: Path, sources: Sequence[Path], written: Sequence[Path]) -> Stamps:
    """The stamps of the files that a result was made of, and of the result.

    Pages only have to be there: other commands add their sections to a report.

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
    """Whether there are stamps, and every file still has its own."""
    return bool(stamps) and all(
        (folder / path).exists() if stamp == [] else _stamp(folder / path) == stamp
        for path, stamp in stamps.items()
    )


def note_finished(
    folder: Path,
    asked: Mapping[str, Any],
    sources: Sequence[Path] | None,
    written: Sequence[Path],
) -> None:
    """Writes down that a command which shares a folder came to its end.

    Args:
        folder: The out folder.
        asked: All that decides the result, and the `verb`.
        sources: The files that the result was made of; None where they cannot be told.
        written: The result's file, then its pages.
    """
    entries = _read(folder)
    entries.pop(str(asked["verb"]), None)
    if sources is not None:
        entries[str(asked["verb"])] = {
            "asked": _plain(asked),
            "versions": versions(),
            "written": [str(path.relative_to(folder)) for path in written],
            "stamps": stamps_of(folder, sources, written),
        }
    write_beside(folder / NAME, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")


def finished_files(folder: Path, asked: Mapping[str, Any]) -> tuple[Path, ...]:
    """The files that the same command wrote, where nothing has changed since; else none.

    Args:
        folder: The out folder.
        asked: All that decides the result, and the `verb`.
    """
    entry = _read(folder).get(str(asked["verb"]), {})
    try:
        alike = entry["asked"] == _plain(asked) and entry["versions"] == versions()
        written = tuple(folder / name for name in entry["written"])
        return written if alike and unchanged(folder, entry["stamps"]) else ()
    except (KeyError, TypeError, AttributeError):  # nothing, or not what broca wrote
        return ()


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _read(folder: Path) -> dict[str, Any]:
    """The entries of a folder by verb; none where there is no file that broca wrote."""
    try:
        entries = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _plain(asked: Mapping[str, Any]) -> Any:
    """Options as JSON gives them back."""
    return json.loads(json.dumps(asked))


def _stamp(path: Path) -> list[int] | None:
    """Size and time of a file, number and checksum of a folder's names; None where it is gone.

    A folder's own time will not do: Python adds `__pycache__` to it when it first imports from it.
    """
    try:
        if path.is_dir():
            names = sorted(name for name in os.listdir(path) if name != "__pycache__")
            return [len(names), zlib.crc32("\0".join(names).encode())]
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
