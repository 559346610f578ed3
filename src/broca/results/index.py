"""An index of results: a line for each, with its page; two ticked lines are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from broca.results.atlas import Atlas
from broca.results.base import Result
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.pages.template import filled
from broca.results.stress_test import StressTest
from broca.results.verification import Verification


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
        "task": str(getattr(result, "task", "")), "verdict": "", "specific": None, "rows": None,
        "selected": (), "scores": {},
    }  # fmt: skip
    if isinstance(result, Localization):
        entry |= _of_set(result.verification)
        entry["rows"] = result.cost.rows + result.cost.verification_rows
        if result.abstained:
            unsure = result.answer is not None and result.answer.says == "not enough rows"
            verdict = "not enough rows" if unsure else "nothing found"
            entry |= {"verdict": verdict, "specific": None, "scores": {}}
    elif isinstance(result, Verification):
        entry |= {"rows": result.rows, **_of_set(result)}
    elif isinstance(result, Atlas):
        entry |= {"task": f"{len(result.tasks)} tasks", "rows": result.cost.rows}
    elif isinstance(result, StressTest):
        entry |= {"task": result.family, "verdict": result.verdict, "selected": result.heads}
    elif isinstance(result, NeuronSet):
        entry["verdict"] = f"{len(result.selected)} neurons"
    return entry


def render_index(entries: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> str:
    """Renders the index as an HTML page; text is escaped.

    Args:
        entries: The lines, which `entry_of` returned.
        notes: Notes for the reader, such as files that could not be read.
    """
    return filled("index", entries=entries, notes=notes, data=json.dumps(entries))


def _of_set(verification: Verification) -> dict[str, Any]:
    verdict = verification.verdict
    return {
        "verdict": verdict.label if verdict else "not verified",
        "specific": verification.specific_drop,
        "selected": verification.heads,
        "scores": {
            name: (before, verification.after[name])
            for name, before in verification.baseline.items()
        },
    }
