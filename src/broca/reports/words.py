"""What a page says first: the verdict as a headline, in plain words."""

from __future__ import annotations

from broca.reports.grid import noun
from broca.results.base import listed
from broca.results.localization import Localization
from broca.results.verification import Verdict, Verification

_HEADLINES = {
    "specific": "{model} needs {set} for {task}",
    "partly specific": "{model} needs {set} for {task}, but not for it alone",
    "universal": "Most tasks of {model} need {set}, not {task} alone",
    "not localized at head level": "{task} loses as much without random {noun} as without {set}",
    "breaks the model": "{model} breaks without {set}, which says nothing on {task}",
    "inconclusive": "Not enough evidence that {model} needs {set} for {task}",
}


def headline(result: Localization | Verification) -> str:
    """The verdict on a set as one sentence without numbers.

    A set without statistics is only said to have been ablated.
    """
    verdict = result.verdict
    if isinstance(result, Localization):
        nouns = noun(line.name for line in result.ranking)
        if result.abstained:
            return f"No {nouns} found that {result.model.name} needs for {result.task}"
    else:
        nouns = noun(result.heads)
    form = "{model} without {set}: what {task} loses (not verified)"
    if verdict is not None:
        form = _HEADLINES[verdict.label]
    return form.format(
        model=result.model.name, set=listed(result.selected), task=result.task, noun=nouns
    )  # fmt: skip


def is_proof(verdict: Verdict | None) -> bool:
    """Whether a verdict says that the task needs the set."""
    return verdict is not None and verdict.label in ("specific", "partly specific")
