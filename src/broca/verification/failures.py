"""Degenerate outputs, by which a broken model differs from a model that lacks a skill."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from broca.measurement import Floats
from broca.results.pages.verification import MODES
from broca.results.verification import SHORTENED, Sample, TaskFailures
from broca.tasks import Generation, Item, LogLikelihood, Output
from broca.verification.statistics import Aggregate

_NGRAM = 3
_WORDS, _CHARACTERS = 8, 16
"""Minimum length of an output, in words or else characters, for detecting repetition."""

_REPEATED = 0.5
_CONSTANT, _CONSTANT_EXCESS, _FEWEST_CONSTANT = 0.5, 0.25, 3
_COLLAPSE, _COLLAPSE_PER_TOKEN = math.log(100), 1.0
"""Minimum loss of all choices in nats, in total and per token; see benchmarks/verdicts.py."""

_RIGHT = 1.0 - 1e-9
"""Minimum response of a right answer."""

ItemOutputs = Sequence[tuple[Output, ...]]
"""The model's answers to the requests of every item."""

Choices = Callable[[Item], Sequence[str]]
"""Returns the texts of an item's choices."""


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


def answer_text(outputs: tuple[Output, ...]) -> str:
    """Returns the answer as text: the generation, or the number of the likeliest choice."""
    first = outputs[0]
    if isinstance(first, Generation):
        return first.text
    if len(outputs) == 1:
        assert isinstance(first, LogLikelihood)
        return "greedy" if first.greedy else "not greedy"
    return f"choice {int(np.argmax(_log_likelihoods(outputs)))}"


def failures(
    task: str,
    items: Sequence[Item],
    before: ItemOutputs,
    after: ItemOutputs,
    scores: Floats,
    *,
    aggregate: Aggregate | None = None,
    chance: float = 0.0,
    can_fail: bool = True,
) -> TaskFailures:
    """Counts the failure modes of a task's outputs, and the loss of score that they explain.

    - `repetition`: see `repeats`.
    - `constant`: the most common output, if it occurs on at least half of the items and on a
      quarter of the items more than the intact model's most common output; it counts on items where
      it is wrong. Choices with equal texts are the same output.
    - `empty`: an output of white space only, if that is wrong.
    - `collapse`: all choices of a multiple-choice item together have less than a hundredth of the
      probability they have in the intact model, and less than 1/e of it for each of their tokens.

    Args:
        task: Name of the task.
        items: The examined items.
        before: The intact model's answers.
        after: The answers with the set ablated.
        scores: Responses to the items, intact and ablated, `(2, items)`; higher is better.
        aggregate: The task's own aggregation if it is not the mean.
        chance: The response of guessing.
        can_fail: Whether the intact model is above chance; otherwise no loss is explained.
    """
    wrong = scores[1] < _RIGHT
    intact, ablated = (dict.fromkeys(MODES, np.zeros(len(items), dtype=bool)) for _ in range(2))
    for modes, answers in ((intact, before), (ablated, after)):
        texts = [_generated(outputs) for outputs in answers]
        modes["repetition"] = np.array([text is not None and repeats(text) for text in texts])
        modes["empty"] = np.array([text is not None and not text.strip() for text in texts])
    ablated["empty"] &= wrong
    usual, given = (list(map(_identity, items, answers)) for answers in (before, after))
    counted = [Counter(text for text in texts if text is not None) for texts in (usual, given)]
    total = sum(counted[0].values())
    if total > _FEWEST_CONSTANT and counted[1]:
        share = counted[0].most_common(1)[0][1] / total
        answer, times = counted[1].most_common(1)[0]
        if times / total >= max(_CONSTANT, share + _CONSTANT_EXCESS):
            ablated["constant"] = np.array([text == answer for text in given]) & wrong
    ablated["collapse"] = np.array(list(map(_collapsed, items, before, after)), dtype=bool)
    new = np.any([*ablated.values()], axis=0) & ~np.any([*intact.values()], axis=0)
    score, every = aggregate or (lambda values, _: float(np.mean(values))), np.arange(len(items))
    skill = score(scores[0], every) - chance
    lost = score((scores[0] - scores[1]) * new, every)
    common = Counter(answer_text(outputs) for outputs in after).most_common(1)[0][0]
    explained = min(1.0, max(0.0, lost / skill)) if can_fail and skill > 0 else 0.0
    return TaskFailures(
        task=task, items=len(items),
        before={mode: float(np.mean(intact[mode])) for mode in MODES},
        after={mode: float(np.mean(ablated[mode])) for mode in MODES},
        excess=float(np.mean(new)), explained=explained, most_common=common[:200],
    )  # fmt: skip


def samples(
    items: Sequence[Item], before: ItemOutputs, after: ItemOutputs, scores: Floats, choices: Choices
) -> tuple[Sample, ...]:
    """Returns the outputs of items side by side; `scores` are `(2, items)`."""

    def text(item: Item, outputs: tuple[Output, ...]) -> str:
        """Returns every choice with its log-likelihood, the likeliest first, or the answer."""
        values, texts = _log_likelihoods(outputs), choices(item)
        if len(texts) < 2 or len(values) < len(texts):
            return answer_text(outputs)[:SHORTENED]
        order = np.argsort(np.negative(values[: len(texts)]), kind="stable")
        return "\n".join(f"{texts[n].strip()} ({values[n]:.1f})" for n in order)[:SHORTENED]

    return tuple(
        Sample(
            item.task, item.prompt[-SHORTENED:], item.target,
            text(item, intact), text(item, ablated), (float(scored[0]), float(scored[1])),
        )
        for item, intact, ablated, scored in zip(items, before, after, scores.T, strict=True)
    )  # fmt: skip


def _log_likelihoods(outputs: tuple[Output, ...]) -> list[float]:
    return [output.value for output in outputs if isinstance(output, LogLikelihood)]


def _generated(outputs: tuple[Output, ...]) -> str | None:
    """Returns the text of a generation; None for likelihoods."""
    first = outputs[0]
    return first.text if isinstance(first, Generation) else None


def _identity(item: Item, outputs: tuple[Output, ...]) -> Hashable:
    """Returns the identity of an answer: a generation's text, or the likeliest choice's tokens.

    Choices that differ only in their position are the same, because the model does not see
    positions. None if there are no choices.
    """
    text = _generated(outputs)
    if text is not None or len(outputs) == 1:
        return text
    chosen = int(np.argmax(_log_likelihoods(outputs)))
    if len(item.requests) != len(outputs):
        return chosen
    if len({request.continuation for request in item.requests}) == 1:  # the contexts are compared
        return item.requests[chosen].context
    return item.requests[chosen].continuation


def _collapsed(item: Item, intact: tuple[Output, ...], ablated: tuple[Output, ...]) -> bool:
    if len(intact) < 2 or not isinstance(intact[0], LogLikelihood):
        return False
    sums = [float(np.logaddexp.reduce(_log_likelihoods(outputs))) for outputs in (intact, ablated)]
    lengths = [len(request.continuation) for request in item.requests] or [1]
    return sums[0] - sums[1] > max(_COLLAPSE, _COLLAPSE_PER_TOKEN * float(np.mean(lengths)))
