"""Decoupling: do items share neurons because of their capability, or because of their content?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broca.errors import BadInput
from broca.neurons.locating import NeuronModel, Tell, item_scores
from broca.neurons.questions import QuestionSet, Text, from_texts
from broca.neurons.selection import Rule, item_set
from broca.neurons.sets import Overlap, overlap
from broca.neurons.statistics import Estimate, estimate
from broca.tasks import RequestTokenizer

MEASURES = ("of_first", "of_second", "of_larger", "iou")


@dataclass(frozen=True)
class Pair:
    """Two items and what they share.

    Attributes:
        relation: Such as `same capability, other content`.
        first: The one.
        second: The other.
    """

    relation: str
    first: Text
    second: Text


@dataclass(frozen=True)
class Decoupled:
    """The overlap of located sets over the pairs of one relation.

    Attributes:
        relation: What the pairs share.
        pairs: How many there are; those where both sets are empty are left out.
        of_first: Common neurons over those of the first item.
        of_second: Over those of the second.
        of_larger: Over the larger set.
        iou: Over the union.
        random_of_larger: `of_larger` of random sets of the same sizes, on average.
        random_iou: The same of `iou`.
    """

    relation: str
    pairs: int
    of_first: Estimate
    of_second: Estimate
    of_larger: Estimate
    iou: Estimate
    random_of_larger: float
    random_iou: float


def read_pairs(path: str | Path) -> list[Pair]:
    """Reads pairs from JSON lines: `relation`, and `first` and `second` with `prompt`, `answer`.

    Raises:
        BadInput: The file cannot be read, or a line is no pair.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadInput(f"--pairs '{path}' is not a file; check the path")
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            data = json.loads(line)
            first, second = (
                Text(str(one["prompt"]), str(one["answer"]))
                for one in (data["first"], data["second"])
            )
            pairs.append(Pair(str(data["relation"]), first, second))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"line {number} of '{path}' is no pair ({type(error).__name__}: {error}): it needs "
                "relation, first and second, each of these with prompt and answer"
            ) from error
    return pairs


def decouple(
    neurons: NeuronModel,
    pairs: Sequence[Pair],
    tokenizer: RequestTokenizer,
    *,
    rule: Rule,
    steps: int = 19,
    seed: int = 0,
    book: Path | None = None,
    tell: Tell | None = None,
) -> tuple[Decoupled, ...]:
    """Locates both items of every pair and compares their sets, relation by relation.

    Args:
        neurons: The model.
        pairs: What to compare.
        tokenizer: For the model.
        rule: Which neurons of an item stand out.
        steps: Steps of the integrated gradients.
        seed: Seed of the intervals.
        book: File of item scores, for resuming.
        tell: Receives how far it is.

    Raises:
        BadInput: There are no pairs.
    """
    if not pairs:
        raise BadInput("there are no pairs to decouple")
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    questions: QuestionSet = from_texts("pairs", texts, tokenizer)
    found = item_scores(neurons, questions, steps=steps, book=book, tell=tell)
    sets = {
        text: item_set(scores, neurons.layers, rule)
        for text, scores in zip(texts, found.scores, strict=True)
    }
    results = []
    for relation in dict.fromkeys(pair.relation for pair in pairs):
        compared: list[Overlap] = [
            overlap(sets[pair.first], sets[pair.second], neurons=len(neurons))
            for pair in pairs
            if pair.relation == relation and (len(sets[pair.first]) or len(sets[pair.second]))
        ]
        if not compared:
            continue
        of_first, of_second, of_larger, iou = (
            estimate([getattr(one, measure) for one in compared], seed=seed) for measure in MEASURES
        )
        results.append(
            Decoupled(
                relation=relation,
                pairs=len(compared),
                of_first=of_first,
                of_second=of_second,
                of_larger=of_larger,
                iou=iou,
                random_of_larger=float(np.mean([one.expected_of_larger for one in compared])),
                random_iou=float(np.mean([one.expected_iou for one in compared])),
            )
        )
    return tuple(results)
