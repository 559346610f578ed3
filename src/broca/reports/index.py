"""An index of results: a line for each, with its page; two ticked lines are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broca.reports.filling import filled
from broca.results.atlas import Atlas
from broca.results.base import Result
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.stress_test import StressTest
from broca.results.verification import Verification


@dataclass(frozen=True)
class IndexEntry:
    """A line of the index; missing values are None or empty.

    Attributes:
        name: The folder as the user named it.
        page: Address of its page, relative to the index; empty if there is none.
        kind: Kind of the result.
        model: The model.
        task: The task, or the number of tasks.
        verdict: The verdict in a word or two.
        specific: The specific drop.
        rows: Number of rows.
        date: The day on which its file was written, `YYYY-MM-DD`.
        selected: The set of the result.
        scores: Scores of every task, intact and with the set ablated.
    """

    name: str
    page: str
    kind: str
    model: str
    task: str
    verdict: str
    specific: float | None
    rows: int | None
    date: str
    selected: tuple[str, ...] = ()
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)


def entry_of(result: Result, *, name: str, page: str, date: str) -> IndexEntry:
    """Returns the line of a result.

    Args:
        result: The result.
        name: Its folder as the user named it.
        page: Address of its page; empty if there is none.
        date: The day on which its file was written.
    """
    fields: dict[str, Any] = {"task": "", "verdict": "", "specific": None, "rows": None}
    if isinstance(result, Localization):
        fields["rows"] = result.cost.rows + result.cost.verification_rows
        fields |= _of_set(result.verification)
        if result.abstained:
            unsure = result.answer is not None and result.answer.says == "not enough rows"
            verdict = "not enough rows" if unsure else "nothing found"
            fields |= {"verdict": verdict, "specific": None, "scores": {}}
    elif isinstance(result, Verification):
        fields |= {"rows": result.rows, **_of_set(result)}
    elif isinstance(result, Atlas):
        fields |= {"task": f"{len(result.tasks)} tasks", "rows": result.cost.rows}
    elif isinstance(result, StressTest):
        fields |= {"task": result.family, "verdict": result.verdict, "selected": result.heads}
    elif isinstance(result, NeuronSet):
        fields |= {"task": result.task, "verdict": f"{len(result.selected)} neurons"}
    else:
        fields["task"] = str(getattr(result, "task", ""))
    model = getattr(getattr(result, "model", None), "name", "")
    return IndexEntry(name=name, page=page, kind=result.kind, model=model, date=date, **fields)


def render_index(entries: Sequence[IndexEntry], notes: Sequence[str] = ()) -> str:
    """Renders the index as an HTML page; text is escaped.

    Args:
        entries: The lines.
        notes: Notes for the reader, such as files that could not be read.
    """
    comparable = [
        {
            "name": entry.name, "model": entry.model, "task": entry.task,
            "verdict": entry.verdict, "selected": entry.selected, "scores": entry.scores,
        }
        for entry in entries
    ]  # fmt: skip
    return filled("index", entries=entries, notes=notes, data=json.dumps(comparable))


def _of_set(verification: Verification) -> dict[str, Any]:
    verdict = verification.verdict
    return {
        "task": verification.task,
        "verdict": verdict.label if verdict else "not verified",
        "specific": verification.specific_drop,
        "selected": verification.heads,
        "scores": {
            name: (before, verification.after[name])
            for name, before in verification.baseline.items()
        },
    }
