"""Decoupling: do items share neurons because of their capability, or because of their content?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.sets import shared
from broca.results.neurons import Decoupled
from broca.tasks.examples import Task

MEASURES = ("of_first", "of_second", "of_larger", "iou")

NAME = "pairs"
"""Name of the task of all items of some pairs."""


@dataclass(frozen=True)
class ItemPair:
    """Two items and their relation.

    Attributes:
        relation: Relation, such as `same capability, other content`.
        first: The first example: `prompt` and `answer`.
        second: The second example.
    """

    relation: str
    first: dict[str, Any]
    second: dict[str, Any]


def read_pairs(path: str | Path) -> list[ItemPair]:
    """Reads pairs from JSON lines: `relation`, and `first` and `second` with `prompt`, `answer`.

    Raises:
        BadInput: The file cannot be read, or a line is not a pair.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadInput(f"`pairs` '{path}' is not a file; check the path")
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            data = json.loads(line)
            first, second = (
                {"prompt": str(item["prompt"]), "answer": f" {str(item['answer']).strip()}"}
                for item in (data["first"], data["second"])
            )
            pairs.append(ItemPair(str(data["relation"]), first, second))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"line {number} of '{path}' is not a pair ({type(error).__name__}: {error}): it "
                "needs relation, first and second, each of these with prompt and answer"
            ) from error
    if not pairs:
        raise BadInput(f"`pairs` '{path}' is empty: there are no pairs to decouple")
    return pairs


def task_of(pairs: Sequence[ItemPair]) -> Task:
    """Returns the task of all distinct items of some pairs."""
    examples = {_key(item): item for pair in pairs for item in (pair.first, pair.second)}
    return Task(NAME, examples=tuple(examples.values()), kind="loglikelihood")


def decoupled(run: NeuronRun, pairs: Sequence[ItemPair]) -> tuple[Decoupled, ...]:
    """Locates both items of every pair and compares their sets, relation by relation.

    Args:
        run: A run on the items of `task_of(pairs)`.
        pairs: The pairs to compare.
    """
    places = run.places(NAME)
    run.stages.enter(f"scoring neurons on {NAME}")
    items = map(_key, run.documents(places))
    sets = dict(zip(items, run.item_sets(places), strict=True))
    results = []
    for relation in dict.fromkeys(pair.relation for pair in pairs):
        set_pairs = [
            (sets[_key(pair.first)], sets[_key(pair.second)])
            for pair in pairs
            if pair.relation == relation
        ]
        overlaps = [
            shared(first, second, neurons=len(run.neurons))
            for first, second in set_pairs
            if len(first) or len(second)
        ]
        if not overlaps:
            continue
        measured = {
            measure: run.mean([getattr(overlap, measure) for overlap in overlaps])
            for measure in MEASURES
        }
        results.append(
            Decoupled(
                relation=relation,
                pairs=len(overlaps),
                **measured,
                random_of_larger=float(
                    np.mean([overlap.expected_of_larger for overlap in overlaps])
                ),
                random_iou=float(np.mean([overlap.expected_iou for overlap in overlaps])),
            )
        )
    return tuple(results)


def _key(example: dict[str, Any]) -> tuple[str, str]:
    return example["prompt"], example["answer"]
