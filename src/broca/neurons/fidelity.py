"""Fidelity: do paraphrases of one item locate to the same neurons?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from broca.errors import BadInput
from broca.neurons.locating import NeuronModel, Tell, item_scores
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Rule, item_set
from broca.neurons.sets import overlap
from broca.neurons.statistics import Estimate, estimate


@dataclass(frozen=True)
class Agreement:
    """The overlap of the sets of pairs of items.

    Attributes:
        pairs: What the pairs have in common.
        of_larger: Common neurons over the larger set.
        iou: Common neurons over the union.
        random_of_larger: `of_larger` of random sets of the same sizes, on average.
        random_iou: The same of `iou`.
    """

    pairs: str
    of_larger: Estimate
    iou: Estimate
    random_of_larger: float
    random_iou: float


@dataclass(frozen=True)
class Fidelity:
    """Whether the wording or the content decides where an item is located.

    Attributes:
        questions: The data set.
        contents: Different contents, each in several wordings.
        set_size: Neurons located for an item, mean.
        empty: Share of items for which no neuron stands out; pairs of two such are left out.
        agreements: Overlaps of paraphrases, of different items in one wording, and of different
            items in different wordings.
    """

    questions: str
    contents: int
    set_size: float
    empty: float
    agreements: tuple[Agreement, ...]


RELATIONS = ("same item, other wording", "other item, same wording", "other item, other wording")


def fidelity(
    neurons: NeuronModel,
    questions: QuestionSet,
    *,
    rule: Rule,
    steps: int = 19,
    seed: int = 0,
    book: Path | None = None,
    tell: Tell | None = None,
) -> Fidelity:
    """Locates every item by itself and compares paraphrases with different items.

    The interval of paraphrases resamples contents. As many pairs of different items are drawn by
    seed as there are pairs of paraphrases.

    Args:
        neurons: The model.
        questions: Items whose contents come in several wordings.
        rule: Which neurons of an item stand out.
        steps: Steps of the integrated gradients.
        seed: Seed of the drawn pairs and the intervals.
        book: File of item scores, for resuming.
        tell: Receives how far it is.

    Raises:
        BadInput: Fewer than two contents with at least two wordings each.
    """
    by_content: dict[str, list[int]] = {}
    for index, question in enumerate(questions.questions):
        by_content.setdefault(question.content, []).append(index)
    several = [group for group in by_content.values() if len(group) > 1]
    if len(several) < 2:
        raise BadInput(
            f"data set '{questions.name}' has no paraphrases: fidelity needs two contents or more, "
            "each in two wordings or more (`broca neurons fidelity --help` names data that has)"
        )
    found = item_scores(neurons, questions, steps=steps, book=book, tell=tell)
    sets = [item_set(one, neurons.layers, rule) for one in found.scores]
    same = [pair for group in several for pair in combinations(group, 2)]
    wordings = [question.wording for question in questions.questions]
    contents = [question.content for question in questions.questions]
    rng = np.random.default_rng([seed, 3])
    drawn: dict[str, list[tuple[int, int]]] = {relation: [] for relation in RELATIONS}
    drawn[RELATIONS[0]] = same
    members = [index for group in several for index in group]
    for _ in range(40 * len(same)):
        first, second = (int(one) for one in rng.choice(members, 2, replace=False))
        if contents[first] == contents[second]:
            continue
        relation = RELATIONS[1] if wordings[first] == wordings[second] else RELATIONS[2]
        if len(drawn[relation]) < len(same):
            drawn[relation].append((first, second))
    agreements = []
    for relation, pairs in drawn.items():
        measured = [
            (contents[first], overlap(sets[first], sets[second], neurons=len(neurons)))
            for first, second in pairs
            if len(sets[first]) or len(sets[second])
        ]
        if not measured:
            continue
        grouped: dict[str, list[int]] = {}
        for number, (content, _) in enumerate(measured):
            grouped.setdefault(content, []).append(number)
        values = {
            measure: np.array([getattr(one, measure) for _, one in measured])
            for measure in ("of_larger", "iou", "expected_of_larger", "expected_iou")
        }
        by_group = {
            measure: [float(values[measure][group].mean()) for group in grouped.values()]
            for measure in ("of_larger", "iou")
        }
        agreements.append(
            Agreement(
                relation,
                estimate(by_group["of_larger"], seed=seed),
                estimate(by_group["iou"], seed=seed),
                float(values["expected_of_larger"].mean()),
                float(values["expected_iou"].mean()),
            )
        )
    return Fidelity(
        questions=questions.name,
        contents=len(several),
        set_size=float(np.mean([len(one) for one in sets])),
        empty=float(np.mean([not len(one) for one in sets])),
        agreements=tuple(agreements),
    )
