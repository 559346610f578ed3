"""Do paraphrases of an item have the same located neurons?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from broca.errors import BadInput
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.sets import shared
from broca.results.neurons import Agreement, Fidelity, Overlap

RELATIONS = ("same item, other wording", "other item, same wording", "other item, other wording")


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
    places = run.places(task)
    documents = run.documents(places)
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
    run.stages.enter(f"scoring neurons on {task}")
    sets = run.item_sets(places)
    agreements = []
    for relation, pairs in _pairs(several, contents, wordings, run.seed).items():
        compared = [
            (contents[first], shared(sets[first], sets[second], neurons=len(run.neurons)))
            for first, second in pairs
            if len(sets[first]) or len(sets[second])
        ]
        if compared:
            agreements.append(_agreement(run, relation, compared))
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
    """Returns pairs of items by relation: all paraphrases, and as many pairs of different items."""
    rng = np.random.default_rng([seed, 3])
    same = [pair for group in several for pair in combinations(group, 2)]
    drawn: dict[str, list[tuple[int, int]]] = {relation: [] for relation in RELATIONS}
    drawn[RELATIONS[0]] = same
    members = [index for group in several for index in group]
    for _ in range(40 * len(same)):
        first, second = (int(index) for index in rng.choice(members, 2, replace=False))
        if contents[first] == contents[second]:
            continue
        relation = RELATIONS[1] if wordings[first] == wordings[second] else RELATIONS[2]
        if len(drawn[relation]) < len(same):
            drawn[relation].append((first, second))
    return drawn


def _agreement(run: NeuronRun, relation: str, compared: Sequence[tuple[str, Overlap]]) -> Agreement:
    by_content: dict[str, list[Overlap]] = {}
    for content, common in compared:
        by_content.setdefault(content, []).append(common)
    of_larger = [np.mean([common.of_larger for common in group]) for group in by_content.values()]
    iou = [np.mean([common.iou for common in group]) for group in by_content.values()]
    return Agreement(
        relation,
        run.mean(np.array(of_larger)),
        run.mean(np.array(iou)),
        float(np.mean([common.expected_of_larger for _, common in compared])),
        float(np.mean([common.expected_iou for _, common in compared])),
    )
