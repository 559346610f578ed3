"""How a repeated run compares with the first one: what `broca rerun` says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repetition:
    """How a repetition compares with the first run.

    Attributes:
        grade: `identical`, `equal within the tolerance`, `same selection`, or `different`.
        details: What differs, a line each.
    """

    grade: str
    details: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the run was reproduced."""
        return self.grade in ("identical", "equal within the tolerance")
