"""The comparison of a repeated run with the first run, which `broca rerun` prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repetition:
    """The comparison of a repeated run with the first run.

    Attributes:
        grade: `identical`, `equal within the tolerance`, `same selection`, or `different`.
        details: The differences, one line each.
    """

    grade: str
    details: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the run was reproduced."""
        return self.grade in ("identical", "equal within the tolerance")
