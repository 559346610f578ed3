"""Lists the files that a result was computed from: those of its model, its tasks and broca itself.

Their sizes and times show without a run whether a finished result is up to date.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from broca.models.hub import cached_files
from broca.tasks import Catalog
from broca.tasks.data_sets import DATA_SETS, PREFIX

MOST = 5000
"""Maximum number of files whose sizes and times are compared."""

_BUILDERS = {"arrow", "csv", "json", "parquet", "text"}
"""Values of `dataset_path` if `data_files` names the data."""


class _Unknown(Exception):
    """The source of some data is unknown."""


def sources_of(
    model: str, revision: str | None, catalogs: Iterable[Catalog], data_sets: Iterable[str] = ()
) -> list[Path] | None:
    """Returns the files and folders that a run read.

    Args:
        model: The model's name.
        revision: Its revision on the hub; None for the newest.
        catalogs: The catalogs that built its tasks.
        data_sets: Names of data sets that were read without a catalog.

    Returns:
        The files, and the folders in which a new file would matter; None if they are unknown, as
        for a task whose own function loads its data.
    """
    try:
        paths = {*_package(), *_model_files(model, revision)}
        for catalog in catalogs:
            for name, tasks in catalog.built:
                paths |= set(_task_files(name, tasks))
            if catalog.include_path is not None:
                paths |= set(_within(catalog.include_path))
        for name in data_sets:
            named = DATA_SETS.get(name.removeprefix(PREFIX))
            path = Path(name.removeprefix(PREFIX)).expanduser() if named is None else None
            if path is not None and path.exists():
                paths |= set(_within(path))
            else:
                paths |= set(_hub_files(named.path if named else str(path), "dataset", None))
    except _Unknown:
        return None
    return sorted(paths) if len(paths) <= MOST else None


def _package() -> Iterator[Path]:
    """The modules of broca: a new version of them may give another result."""
    return (path for path in _within(Path(str(files("broca")))) if path.suffix == ".py")


def _model_files(name: str, revision: str | None) -> Iterable[Path]:
    from broca.models.loading import SHIPPED_MODELS, shipped_model_folder

    if name in SHIPPED_MODELS:
        return _within(shipped_model_folder(name))
    folder = Path(name).expanduser()
    return _within(folder) if folder.is_dir() else _hub_files(name, "model", revision)


def _task_files(name: str, tasks: Iterable[Any]) -> Iterator[Path]:
    """Yields the folder of a task's definition, and its data.

    Args:
        name: The task's name, which may be a file.
        tasks: lm-eval's own objects.
    """
    file = Path(name.removeprefix("data:")).expanduser()
    if file.is_file():
        yield file.absolute()
        return
    for task in tasks:
        config = task.config
        definition = (config.metadata or {}).get("config_source")
        if definition is None:
            raise _Unknown
        folder = Path(definition).parent
        yield from _within(folder)
        if config.dataset_path is None:
            if not folder.is_relative_to(str(files("broca"))):
                raise _Unknown
        else:
            yield from _data_files(config.dataset_path, config.dataset_kwargs or {})


def _data_files(path: str, options: Mapping[str, Any]) -> Iterator[Path]:
    folder = Path(path).expanduser()
    if folder.is_dir():
        yield from _within(folder)
        return
    if path not in _BUILDERS:
        yield from _hub_files(path, "dataset", options.get("revision"))
        return
    named = [*_texts(options.get("data_files")), *_texts(options.get("data_dir"))]
    for file in map(Path, named):
        if not file.exists():  # an address or a pattern
            raise _Unknown
        yield from _within(file)


def _texts(value: Any) -> Iterator[str]:
    """The texts within lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _hub_files(name: str, kind: str, revision: str | None) -> list[Path]:
    paths = cached_files(name, kind, revision)
    if not paths:
        raise _Unknown
    return paths


def _within(place: Path) -> Iterator[Path]:
    """Yields a file, or a folder and its contents except `__pycache__`."""
    yield place.absolute()
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(folder, name).absolute() for name in [*folders, *names])
