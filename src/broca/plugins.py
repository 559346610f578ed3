"""Records by name, broca's own and those that other packages offer by entry points."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import Protocol, TypeVar

from broca.errors import BadInput


class Record(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str:
        """Name for look-ups."""


R = TypeVar("R", bound=Record)


class Plugins(Mapping[str, R]):
    """Records of one class by name, those of other packages last.

    Entry points are loaded at the first look-up, which raises `BadInput` if one cannot be loaded,
    is no record of the class, or has a name that is taken.

    Args:
        kind: Class of the records.
        shipped: broca's own records, in their order.
        group: Group of the entry points, such as `broca.searches`.
    """

    def __init__(self, kind: type[R], *shipped: R, group: str) -> None:
        self._kind, self._shipped, self._group = kind, shipped, group

    def __getitem__(self, name: str) -> R:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _records(self) -> dict[str, R]:
        records = {record.name: record for record in self._shipped}
        for entry in sorted(entry_points(group=self._group), key=lambda entry: entry.name):
            package = entry.dist.name if entry.dist is not None else entry.module
            entry_name = f"'{entry.name}' in {self._group} of package '{package}'"
            try:
                record = entry.load()
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise BadInput(
                    f"{entry_name} cannot be loaded ({reason}): repair or uninstall the package"
                ) from error
            if not isinstance(record, self._kind):
                raise BadInput(
                    f"{entry_name} is a {type(record).__name__} and no {self._kind.__name__}: "
                    "repair or uninstall the package"
                )
            if record.name in records:
                raise BadInput(
                    f"{entry_name} has the name '{record.name}', which is taken: rename it or "
                    "uninstall the package"
                )
            records[record.name] = record
        return records
