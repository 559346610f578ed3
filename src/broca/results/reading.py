"""Reads any kind of result, and lists results in an index."""

import json
from pathlib import Path
from typing import Any

from broca.errors import BadInput
from broca.known_paths import place_of
from broca.results.atlas import Atlas
from broca.results.base import Result
from broca.results.checks import Diagnosis, Scan
from broca.results.claim import Claim, Replication
from broca.results.comparison import Comparison
from broca.results.export import Export
from broca.results.files import read_text
from broca.results.localization import Localization, Refit
from broca.results.neurons import Erasure, NeuronSet
from broca.results.runs import CostEstimate, JournalContents, Reproduction
from broca.results.stress_test import StressTest
from broca.results.tasks import TaskDescription, TaskList
from broca.results.verification import Verification

KINDS: tuple[type[Result], ...] = (
    Localization, Atlas, NeuronSet, Verification, StressTest, Refit, CostEstimate,
    Erasure, Comparison, Export, Reproduction, Scan, TaskList, TaskDescription, Diagnosis,
    JournalContents, Replication, Claim,
)  # fmt: skip
"""All kinds; a folder with several is read as the first of them."""


def read(path: str | Path) -> Result:
    """Reads any result of broca from a file or an out folder.

    The folder of a run is read as its localization, whose verification is the newest there. To
    read the result of a later verb in it, give its file, such as `verification.json`, or call
    `Verification.read(folder)`.

    Args:
        path: The file or the folder.

    Raises:
        BadInput: The path does not exist, or is not a result of broca.
    """
    path = place_of(path)
    if path.is_dir():
        named = [path / kind.FILE for kind in KINDS if kind.FILE]
        files = [file for file in named if file.is_file()]
        files = files or [file for file in sorted(path.glob("*.json")) if _kind_of(file)]
        if not files:
            names = ", ".join(file.name for file in named)
            raise BadInput(
                f"'{path}' holds no result of broca ({names}): give the out folder of a finished "
                "command"
            )
        path = files[0]
    kind = _kind_of(path)
    if kind is None:
        what = "is not a result of broca" if path.exists() else "does not exist"
        raise BadInput(f"'{path}' {what}: give an out folder, or a file that broca wrote")
    result = kind.read(path)
    return result.newest(path.parent) if isinstance(result, Localization) else result


def _kind_of(file: Path) -> type[Result] | None:
    """Returns the kind that a file states, else that of its name; None if it is not a result."""
    try:
        data: Any = json.loads(read_text(file))
    except (BadInput, ValueError, RecursionError):
        data = None
    recorded = data.get("kind") if isinstance(data, dict) else None
    return next(
        (k for k in KINDS if k.kind == recorded or (recorded is None and file.name == k.FILE)), None
    )


def entry_of(result: Result, *, name: str, page: str, date: str) -> dict[str, Any]:
    """Returns the line of a result: what it names and, of a set, its members and all scores.

    Args:
        result: The result.
        name: Its folder as the user named it.
        page: Address of its page, relative to the index; empty if there is none.
        date: The day on which its file was written, `YYYY-MM-DD`.
    """
    entry: dict[str, Any] = {
        "name": name, "page": page, "kind": result.kind, "date": date,
        "model": getattr(getattr(result, "model", None), "name", ""),
        "task": str(getattr(result, "task", "")), "finding": result.summary()[0],
        "specific": None, "selected": (), "scores": {},
    }  # fmt: skip
    verification = getattr(result, "verification", result)
    if isinstance(verification, Verification) and verification.heads:
        entry["specific"] = verification.specific_drop if verification.verdict else None
        entry["selected"] = verification.heads
        entry["scores"] = {line.task: (line.before, line.after) for line in verification.drops}
    return entry
