"""The report of a run, with whatever later commands found about the same heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broca.results.localization import Localization
    from broca.results.verification import Verification


def write_report(
    result: Localization, folder: Path, *, evidence: Verification | None = None
) -> Path:
    """Writes `report.html` with the verification and the stress test that lie in the folder.

    Each counts if it is of the result's model and selection: an older one of another run does not.

    Args:
        result: The run.
        folder: Where the report goes, and where `verification.json` and `stress.json` may lie.
        evidence: A verification to show whatever its heads are.
    """
    from broca.reports import render_html
    from broca.results.files import write_beside
    from broca.results.stress_test import StressTest
    from broca.results.verification import Verification

    own = (result.model.fingerprint, set(result.selected))
    stress = None
    if evidence is None and (folder / "verification.json").is_file():
        read = Verification.read(folder)
        if (read.fingerprint, set(read.heads)) == own and read.task == result.task:
            evidence = read
    if (folder / "stress.json").is_file():
        found = StressTest.read(folder / "stress.json")
        stress = found if (found.fingerprint, set(found.heads)) == own else None
    page = folder / "report.html"
    write_beside(page, render_html(result, evidence, stress))
    return page
