"""The headline of a page: the verdict in plain words."""

from __future__ import annotations

from broca.reports.grid import noun
from broca.results.base import joined_names
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
    """Returns the headline of a result, with which a page and a terminal begin.

    It says that a model needs a set only if the verdict is `specific`; other verdicts have their
    own sentences. For a set without statistics it only reports the ablation.
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
    form = "{model} without {set}: drop of {task} (not verified)"
    if verdict is not None:
        if verdict.label != "specific" and verdict.headline:
            return verdict.headline
        form = _HEADLINES[verdict.label]
    return form.format(model=model, set=joined_names(result.selected), task=result.task)


def is_proof(verdict: Verdict | None) -> bool:
    """Whether a verdict states that the task needs the set."""
    return verdict is not None and verdict.label == "specific"
