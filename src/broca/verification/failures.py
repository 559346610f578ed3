"""Degenerate outputs: a model that is broken fails in other ways than one that lacks a skill."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from broca.results.verification import Sample, TaskFailures
from broca.tasks import Generation, Item, LogLikelihood, Output

MODES = ("repetition", "constant", "empty", "collapse")
"""Names of the failure modes, as results list them."""

_NGRAM = 3
_WORDS, _CHARACTERS = 8, 16
"""Shortest output, in words or else characters, in which a loop can be told from an answer."""

_REPEATED = 0.5
_CONSTANT, _CONSTANT_EXCESS = 0.5, 0.25
_COLLAPSE = math.log(100)

Answers = Sequence[tuple[Output, ...]]
"""The model's answers to the requests of every item."""


def repeats(text: str) -> bool:
    """Whether at least half of the 3-grams of a text have occurred in it before.

    Words are the units if there are at least 8, else characters if there are at least 16; shorter
    texts never count.
    """
    units: Sequence[str] = text.split()
    if len(units) < _WORDS:
        units = "".join(text.split())
        if len(units) < _CHARACTERS:
            return False
    grams = [tuple(units[start : start + _NGRAM]) for start in range(len(units) - _NGRAM + 1)]
    return 1 - len(set(grams)) / len(grams) >= _REPEATED


def said(outputs: tuple[Output, ...]) -> str:
    """What the model answered, as text: its generation, or the number of its likeliest choice."""
    first = outputs[0]
    if isinstance(first, Generation):
        return first.text
    if len(outputs) == 1:
        assert isinstance(first, LogLikelihood)
        return "greedy" if first.greedy else "not greedy"
    values = [one.value for one in outputs if isinstance(one, LogLikelihood)]
    return f"choice {int(np.argmax(values))}"


def modes_of(before: Answers, after: Answers) -> tuple[dict[str, list[bool]], ...]:
    """Failure modes of every item's output, intact and with a set ablated.

    - `repetition`: see `repeats`.
    - `constant`: the most common output, if it is given to at least half of the items and to a
      quarter of them more than the most common one of the intact model.
    - `empty`: nothing but white space.
    - `collapse`: all choices of a multiple-choice item together have less than a hundredth of the
      probability they have in the intact model.

    Returns:
        For each mode one truth value an item, before and after.
    """
    texts = [[said(outputs) for outputs in answers] for answers in (before, after)]
    generated = [bool(outputs) and isinstance(outputs[0], Generation) for outputs in before]
    compared = [
        generates or len(outputs) > 1 for generates, outputs in zip(generated, before, strict=True)
    ]
    found: list[dict[str, list[bool]]] = []
    for own in texts:
        found.append(
            {
                "repetition": [g and repeats(text) for g, text in zip(generated, own, strict=True)],
                "constant": [False] * len(own),
                "empty": [g and not text.strip() for g, text in zip(generated, own, strict=True)],
                "collapse": [False] * len(own),
            }
        )
    if any(compared):
        counted = [
            Counter(text for text, counts in zip(own, compared, strict=True) if counts)
            for own in texts
        ]
        total = sum(compared)
        usual = counted[0].most_common(1)[0][1] / total
        answer, times = counted[1].most_common(1)[0]
        share = times / total
        if total > 3 and share >= _CONSTANT and share >= usual + _CONSTANT_EXCESS:
            found[1]["constant"] = [
                counts and text == answer for text, counts in zip(texts[1], compared, strict=True)
            ]
    found[1]["collapse"] = [
        _collapsed(intact, ablated) for intact, ablated in zip(before, after, strict=True)
    ]
    return tuple(found)


def failures(task: str, before: Answers, after: Answers) -> TaskFailures:
    """Counts the failure modes of one task's outputs."""
    intact, ablated = modes_of(before, after)
    broken_before = np.array([any(intact[mode][i] for mode in MODES) for i in range(len(before))])
    broken_after = np.array([any(ablated[mode][i] for mode in MODES) for i in range(len(before))])
    common = Counter(said(outputs) for outputs in after).most_common(1)[0][0]
    return TaskFailures(
        task=task,
        items=len(before),
        before={mode: float(np.mean(intact[mode])) for mode in MODES},
        after={mode: float(np.mean(ablated[mode])) for mode in MODES},
        excess=float(np.mean(broken_after & ~broken_before)),
        most_common=common[:200],
    )


def samples(items: Sequence[Item], before: Answers, after: Answers) -> tuple[Sample, ...]:
    """Outputs side by side, item by item."""
    return tuple(
        Sample(item.task, item.prompt[-500:], item.target, said(intact)[:500], said(ablated)[:500])
        for item, intact, ablated in zip(items, before, after, strict=True)
    )


def _collapsed(intact: tuple[Output, ...], ablated: tuple[Output, ...]) -> bool:
    if len(intact) < 2 or not isinstance(intact[0], LogLikelihood):
        return False
    sums = [
        float(np.logaddexp.reduce([one.value for one in side if isinstance(one, LogLikelihood)]))
        for side in (intact, ablated)
    ]
    return sums[0] - sums[1] > _COLLAPSE
