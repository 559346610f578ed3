"""Records by name, from the modules of a package and from entry points of other packages.

A menu imports nothing before the first look-up and can therefore be defined in an `__init__`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Protocol, TypeVar

from broca.errors import BadInput


class Record(Protocol):
    """A record of a menu, with a name and a place."""

    @property
    def name(self) -> str:
        """Name for look-ups."""

    @property
    def order(self) -> int:
        """Place on the menu; equal places are ordered by name."""


R = TypeVar("R", bound=Record)


class Menu(Mapping[str, R]):
    """Records of one class by name, in the order of the menu.

    A record is an object of the class in a module of the package, or the object of an entry point
    of another package. Look-ups raise `BadInput` if an entry point is broken.

    Args:
        kind: Class of the records.
        package: Package whose modules define the records.
        group: Group of entry points.
    """

    def __init__(self, kind: type[R], *, package: str, group: str) -> None:
        self._kind, self._package, self._group = kind, package, group

    def __getitem__(self, name: str) -> R:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _records(self) -> dict[str, R]:
        shipped = defined_in(self._package, self._kind)
        return shipped | offered(self._group, self._kind, existing=shipped)


def defined_in(package: str, kind: type[R]) -> dict[str, R]:
    """Returns the records at the top level of the modules of a package, by order and name."""
    modules = pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    records = {
        record.name: record
        for module in modules
        for record in vars(import_module(module.name)).values()
        if isinstance(record, kind)
    }
    return dict(sorted(records.items(), key=lambda pair: (pair[1].order, pair[0])))


def offered(group: str, kind: type[R], *, existing: Mapping[str, R]) -> dict[str, R]:
    """Returns the records of the entry points of other packages, by name.

    Args:
        group: Group of entry points, such as `broca.searches`.
        kind: Class of the records.
        existing: Records whose names are taken.

    Raises:
        BadInput: An entry point cannot be loaded, is no record, or has a taken name.
    """
    from importlib.metadata import entry_points

    records: dict[str, R] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.module
        entry_name = f"'{entry.name}' in {group} of package '{package}'"
        try:
            record = entry.load()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(
                f"{entry_name} cannot be loaded ({reason}): repair or uninstall the package"
            ) from error
        if not isinstance(record, kind):
            raise BadInput(
                f"{entry_name} is a {type(record).__name__} and no {kind.__name__}: repair or "
                "uninstall the package"
            )
        if record.name in existing or record.name in records:
            raise BadInput(
                f"{entry_name} has the name '{record.name}', which is taken: rename it or "
                "uninstall the package"
            )
        records[record.name] = record
    return records
