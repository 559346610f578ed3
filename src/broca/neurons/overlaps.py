"""Overlaps of located sets: of paraphrases, of pairs of items, and of halves of data sets."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from broca.errors import BadInput
from broca.neurons.items import PAIRS, ItemPair
from broca.neurons.methods import Columns
from broca.neurons.neuron_run import NeuronRun
from broca.results.neurons import Agreement, ComparedHalves, Decoupled, Fidelity, Overlap, Overlaps

SAME_ITEM, SAME_WORDING, OTHER = RELATIONS = (
    "same item, other wording",
    "other item, same wording",
    "other item, other wording",
)
"""Relations of the wordings that `reworded` compares."""

_MEASURES = ("of_first", "of_second", "of_larger", "iou", "expected_of_larger", "expected_iou")


def shared(first: Columns, second: Columns, *, neurons: int) -> Overlap:
    """Compares two sets of a model's `neurons`; what is divided by an empty set is None."""

    def ratio(part: float, total: float) -> float | None:
        return part / total if total else None

    common = len(np.intersect1d(first, second))
    expected = len(first) * len(second) / neurons
    larger, total = max(len(first), len(second)), len(first) + len(second)
    return Overlap(
        common=common,
        of_first=ratio(common, len(first)),
        of_second=ratio(common, len(second)),
        of_larger=ratio(common, larger),
        iou=ratio(common, total - common),
        expected_of_larger=ratio(expected, larger),
        expected_iou=ratio(expected, total - expected),
    )


def _mean(overlaps: Sequence[Overlap], measure: str) -> float:
    """Returns the mean of a measure where it is known; NaN if it is nowhere."""
    values = [getattr(overlap, measure) for overlap in overlaps]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


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
    documents = run.documents(task)
    contents = [str(document.get("content", number)) for number, document in enumerate(documents)]
    wordings = [str(document.get("wording", "")) for document in documents]
    by_content: dict[str, list[int]] = {}
    for index, content in enumerate(contents):
        by_content.setdefault(content, []).append(index)
    several = [group for group in by_content.values() if len(group) > 1]
    if len(several) < 2:
        raise BadInput(
            f"too few paraphrases of '{task}': fidelity needs two contents or more, each in two "
            "wordings or more"
        )
    sets = run.item_sets(task)
    same = [pair for group in several for pair in combinations(group, 2)]
    drawn: dict[str, list[tuple[int, int]]] = {SAME_ITEM: same, SAME_WORDING: [], OTHER: []}
    rng = np.random.default_rng([run.seed, 3])
    members = [index for group in several for index in group]
    for _ in range(40 * len(same)):
        first, second = rng.choice(members, 2, replace=False).tolist()
        if contents[first] != contents[second]:
            pairs = drawn[SAME_WORDING if wordings[first] == wordings[second] else OTHER]
            if len(pairs) < len(same):
                pairs.append((first, second))
    agreements = []
    for relation, pairs in drawn.items():
        groups: dict[str, list[Overlap]] = {}
        every: list[Overlap] = []
        for first, second in pairs:
            if len(sets[first]) or len(sets[second]):
                every.append(shared(sets[first], sets[second], neurons=len(run.neurons)))
                groups.setdefault(contents[first], []).append(every[-1])
        if every:
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


def overlapped(run: NeuronRun) -> Overlaps:
    """Locates on two halves of every task's `locate` items and compares all of them.

    Halves are compared with halves, both across tasks and within a task, so that every set is
    computed from the same number of items. Pairs of each relation are summarized.
    """
    located: list[tuple[str, int, Columns]] = []
    for name in run.names:
        run.stages.enter(f"scoring neurons on {name}")
        places = run.places(name)
        order = np.random.default_rng([run.seed, 2]).permutation(len(places))
        middle = len(places) // 2
        for number, half in enumerate((order[:middle], order[middle:]), start=1):
            scores = run.item_scores(places[np.sort(half)]).scores
            located.append((name, number, run.outstanding(scores.mean(axis=0))))
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
    summary: dict[str, dict[str, float | None]] = {}
    for relation in ("same data", "same capability", "other capability"):
        overlaps = [pair.overlap for pair in pairs if pair.relation == relation]
        if overlaps:
            summary[relation] = {measure: _mean(overlaps, measure) for measure in _MEASURES}
    return Overlaps(run.names, tuple(pairs), summary)


def decoupled(run: NeuronRun, pairs: Sequence[ItemPair]) -> tuple[Decoupled, ...]:
    """Locates both items of every pair and compares their sets, relation by relation.

    Args:
        run: A run on the items of `task_of(pairs)`.
        pairs: The pairs to compare.
    """
    items = [(document["prompt"], document["answer"]) for document in run.documents(PAIRS)]
    sets = dict(zip(items, run.item_sets(PAIRS), strict=True))
    compared: dict[str, list[Overlap]] = {}
    for pair in pairs:
        first, second = sets[pair.first], sets[pair.second]
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
