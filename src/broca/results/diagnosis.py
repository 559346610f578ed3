"""The checks of a machine, which `broca doctor` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from broca.results.base import Result

CheckState = Literal["ok", "missing", "broken"]
"""`missing` marks an optional feature; broca cannot run if a check is `broken`."""


@dataclass(frozen=True)
class MachineCheck:
    """The result of a check.

    Attributes:
        name: Name of the check.
        state: `ok`, `missing` or `broken`.
        description: Version, place or state of what was checked.
        remedy: Command or advice that fixes it; empty if nothing needs fixing.
    """

    name: str
    state: CheckState
    description: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Result, file="doctor.json", verb="broca doctor"):
    """The results of all checks of a machine.

    Attributes:
        checks: The checks.
    """

    kind: Literal["diagnosis"] = "diagnosis"
    checks: tuple[MachineCheck, ...]

    @property
    def can_run(self) -> bool:
        """Whether broca can run here."""
        return all(check.state != "broken" for check in self.checks)

    def summary(self) -> tuple[str, ...]:
        """Returns whether broca can run here, and what is missing."""
        missing = [check.name for check in self.checks if check.state != "ok"]
        return (
            f"broca {'can' if self.can_run else 'cannot'} run here",
            f"{len(self.checks)} checks; missing or broken: {', '.join(missing) or 'none'}",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each check."""
        return [asdict(check) for check in self.checks]
