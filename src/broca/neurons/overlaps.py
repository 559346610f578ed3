"""Overlaps of located sets: of paraphrases, of pairs of items, and of halves of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from broca.errors import BadInput
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.paraphrases import PAIRS, ItemPair, key_of
from broca.neurons.selection import Columns, commonality_set, shared
from broca.results.neurons import Agreement, ComparedHalves, Decoupled, Fidelity, Overlap, Overlaps

RELATIONS = ("same item, other wording", "other item, same wording", "other item, other wording")
"""Relations of the wordings that `reworded` compares."""

_MEASURES = ("of_first", "of_second", "of_larger", "iou", "expected_of_larger", "expected_iou")


def reworded(run: NeuronRun, task: str) -> Fidelity:
    """Locates the neurons of every item and compares paraphrases with different items.

    The interval of paraphrases resamples contents. The number of pairs of different items, drawn by
    seed, equals the number of pairs of paraphrases.

    Args:
        run: The run.
        task: A task whose examples have a `content`, which paraphrases share, and a `wording`.

    Raises:
        BadInput: There are fewer than two contents with at least two wordings each.
    """
    documents = run.documents(run.places(task))
    contents = [str(document.get("content", number)) for number, document in enumerate(documents)]
    wordings = [str(document.get("wording", "")) for document in documents]
    by_content: dict[str, list[int]] = {}
    for index, content in enumerate(contents):
        by_content.setdefault(content, []).append(index)
    several = [group for group in by_content.values() if len(group) > 1]
    if len(several) < 2:
        raise BadInput(
            f"task '{task}' has no paraphrases: fidelity needs two contents or more, each in two "
            "wordings or more (`broca neurons fidelity --help` names data that has)"
        )
    sets = run.item_sets(run.places(task), task)
    agreements = []
    for relation, pairs in _pairs(several, contents, wordings, run.seed).items():
        compared = [
            (contents[first], shared(sets[first], sets[second], neurons=len(run.neurons)))
            for first, second in pairs
            if len(sets[first]) or len(sets[second])
        ]
        if compared:
            groups: dict[str, list[Overlap]] = {}
            for content, overlap in compared:
                groups.setdefault(content, []).append(overlap)
            every = [overlap for _, overlap in compared]
            agreements.append(
                Agreement(
                    relation,
                    run.mean([_mean(group, "of_larger") for group in groups.values()]),
                    run.mean([_mean(group, "iou") for group in groups.values()]),
                    _mean(every, "expected_of_larger"),
                    _mean(every, "expected_iou"),
                )
            )
    return Fidelity(
        questions=task,
        contents=len(several),
        set_size=float(np.mean([len(columns) for columns in sets])),
        empty=float(np.mean([not len(columns) for columns in sets])),
        agreements=tuple(agreements),
    )


def _pairs(
    several: Sequence[Sequence[int]], contents: Sequence[str], wordings: Sequence[str], seed: int
) -> Mapping[str, list[tuple[int, int]]]:
    """Returns the pairs of items to compare, by relation."""
    rng = np.random.default_rng([seed, 3])
    same = [pair for group in several for pair in combinations(group, 2)]
    drawn: dict[str, list[tuple[int, int]]] = {
        RELATIONS[0]: same,
        RELATIONS[1]: [],
        RELATIONS[2]: [],
    }
    members = [index for group in several for index in group]
    for _ in range(40 * len(same)):
        first, second = (int(index) for index in rng.choice(members, 2, replace=False))
        if contents[first] == contents[second]:
            continue
        relation = RELATIONS[1] if wordings[first] == wordings[second] else RELATIONS[2]
        if len(drawn[relation]) < len(same):
            drawn[relation].append((first, second))
    return drawn


def overlapped(run: NeuronRun, names: Sequence[str]) -> Overlaps:
    """Locates on two halves of every task's `locate` items and compares all of them.

    Halves are compared with halves, both across tasks and within a task, so that every set is
    computed from the same number of items.

    Args:
        run: The run.
        names: The tasks; pairs of the same capability are summarized separately.
    """
    located: list[tuple[str, int, Columns]] = []
    for name in names:
        run.stages.enter(f"scoring neurons on {name}")
        places = run.places(name)
        order = np.random.default_rng([run.seed, 2]).permutation(len(places))
        middle = len(places) // 2
        for number, half in enumerate((order[:middle], order[middle:]), start=1):
            scores = run.item_scores(places[np.sort(half)]).scores
            located.append((name, number, commonality_set(scores, run.neurons.layers, run.rule)))
    pairs = [
        ComparedHalves(
            f"{first}/{first_half}",
            f"{second}/{second_half}",
            run.relation(first, second),
            (len(columns), len(others)),
            shared(columns, others, neurons=len(run.neurons)),
        )
        for (first, first_half, columns), (second, second_half, others) in combinations(located, 2)
    ]
    summary = {}
    for relation in ("same data", "same capability", "other capability"):
        overlaps = [pair.overlap for pair in pairs if pair.relation == relation]
        if overlaps:
            summary[relation] = {measure: _known(overlaps, measure) for measure in _MEASURES}
    return Overlaps(tuple(names), tuple(pairs), summary)


def _known(overlaps: Sequence[Overlap], measure: str) -> float | None:
    """Returns the mean of a measure where it is known; None if it is nowhere."""
    values = [getattr(overlap, measure) for overlap in overlaps]
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def decoupled(run: NeuronRun, pairs: Sequence[ItemPair]) -> tuple[Decoupled, ...]:
    """Locates both items of every pair and compares their sets, relation by relation.

    Args:
        run: A run on the items of `task_of(pairs)`.
        pairs: The pairs to compare.
    """
    places = run.places(PAIRS)
    items = map(key_of, run.documents(places))
    sets = dict(zip(items, run.item_sets(places, PAIRS), strict=True))
    compared: dict[str, list[Overlap]] = {}
    for pair in pairs:
        first, second = sets[key_of(pair.first)], sets[key_of(pair.second)]
        if len(first) or len(second):
            overlap = shared(first, second, neurons=len(run.neurons))
            compared.setdefault(pair.relation, []).append(overlap)
    return tuple(
        Decoupled(
            relation=relation,
            pairs=len(overlaps),
            **{
                measure: run.mean([getattr(overlap, measure) for overlap in overlaps])
                for measure in ("of_first", "of_second", "of_larger", "iou")
            },
            random_of_larger=_mean(overlaps, "expected_of_larger"),
            random_iou=_mean(overlaps, "expected_iou"),
        )
        for relation, overlaps in compared.items()
    )


def _mean(overlaps: Sequence[Overlap], measure: str) -> float:
    return float(np.mean([getattr(overlap, measure) for overlap in overlaps]))
