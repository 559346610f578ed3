"""What a page says first: the verdict as a headline, in plain words."""

from __future__ import annotations

from broca.reports.grid import noun
from broca.results.base import listed
from broca.results.localization import Localization
from broca.results.verification import Verdict, Verification

_HEADLINES = {
    "specific": "{model} needs {set} for {task}",
    "partly specific": "Ablating {set} costs {task}, but the loss is not clearly confined to it",
    "universal": "Most tasks of {model} need {set}, not {task} alone",
    "not localized at head level": "{task} is not localized in {set}",
    "breaks the model": "{model} breaks without {set}, which says nothing about {task}",
    "inconclusive": "Not enough evidence that {model} needs {set} for {task}",
}


def headline(result: Localization | Verification) -> str:
    """What is true of a set, as one sentence: a page and a terminal begin with it.

    That a model needs a set is said where the verdict is `specific`, and nowhere else; other
    verdicts bring their own sentence. A set without statistics is only said to have been ablated.
    """
    verdict, model = result.verdict, result.model.short_name
    if isinstance(result, Localization) and result.abstained:
        nouns, answer = noun(line.name for line in result.ranking), result.answer
        if answer is not None and answer.says == "not enough rows":
            return f"Not enough rows to tell which {nouns} {model} needs for {result.task}"
        if answer is not None and answer.bound is not None:
            return (
                f"No set of {nouns} of {model} costs {result.task} "
                f"{100 * answer.bound:.0f} points or more beyond the other tasks"
            )
        return f"No {nouns} found that {model} needs for {result.task}"
    form = "{model} without {set}: what {task} loses (not verified)"
    if verdict is not None:
        if verdict.label != "specific" and verdict.headline:
            return verdict.headline
        form = _HEADLINES[verdict.label]
    return form.format(model=model, set=listed(result.selected), task=result.task)


def is_proof(verdict: Verdict | None) -> bool:
    """Whether a verdict says that the task needs the set."""
    return verdict is not None and verdict.label == "specific"
