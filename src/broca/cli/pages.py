"""The report of a run, with whatever later commands found about the same heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broca.evidence import Evidence
    from broca.result import Result


def write_report(result: Result, folder: Path, *, evidence: Evidence | None = None) -> Path:
    """Writes `report.html` with the verification and the stress test that lie in the folder.

    Each counts if it is of the result's model and selection: an older one of another run does not.

    Args:
        result: The run.
        folder: Where the report goes, and where `verification.json` and `stress.json` may lie.
        evidence: A verification to show whatever its heads are.
    """
    from broca.evidence import Evidence
    from broca.files import write_beside
    from broca.report import render_html
    from broca.stressed import Stress

    own = (result.model.fingerprint, set(result.selected))
    stress = None
    if evidence is None and (folder / "verification.json").is_file():
        read = Evidence.read(folder)
        if (read.fingerprint, set(read.heads)) == own and read.task == result.task:
            evidence = read
    if (folder / "stress.json").is_file():
        found = Stress.read(folder / "stress.json")
        stress = found if (found.fingerprint, set(found.heads)) == own else None
    page = folder / "report.html"
    write_beside(page, render_html(result, evidence, stress))
    return page
