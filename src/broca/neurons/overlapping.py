"""Do two halves of a data set, and two data sets, have the same commonality neurons?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broca.neurons.locating import NeuronModel, Tell, item_scores
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Rule, commonality_set
from broca.neurons.sets import Overlap, overlap


@dataclass(frozen=True)
class Compared:
    """The overlap of the located sets of two halves of data sets.

    Attributes:
        first: Name of the one half.
        second: Name of the other.
        relation: `same data`, `same capability` or `other capability`.
        sizes: Neurons in each of the two sets.
        overlap: What they share.
    """

    first: str
    second: str
    relation: str
    sizes: tuple[int, int]
    overlap: Overlap


@dataclass(frozen=True)
class Overlaps:
    """All pairs of halves, and their summary.

    Attributes:
        names: The data sets.
        pairs: Every pair of halves of different names; two halves of one data set included.
        summary: By relation, the mean over pairs of each measure.
    """

    names: tuple[str, ...]
    pairs: tuple[Compared, ...]
    summary: dict[str, dict[str, float]]

    def matrix(self, measure: str = "of_larger") -> list[list[float]]:
        """A measure between data sets, `(sets, sets)`: mean over pairs of halves.

        On the diagonal are the two halves of one data set.
        """
        position = {name: number for number, name in enumerate(self.names)}
        total = np.zeros((len(self.names), len(self.names)))
        count = np.zeros_like(total)
        for pair in self.pairs:
            i, j = (position[name.rsplit("/", 1)[0]] for name in (pair.first, pair.second))
            for a, b in {(i, j), (j, i)}:
                total[a, b] += getattr(pair.overlap, measure)
                count[a, b] += 1
        with np.errstate(invalid="ignore"):
            return [[float(value) for value in row] for row in total / count]


_MEASURES = ("of_first", "of_second", "of_larger", "iou", "expected_of_larger", "expected_iou")


def overlaps(
    neurons: NeuronModel,
    data: Sequence[QuestionSet],
    *,
    rule: Rule,
    steps: int = 19,
    seed: int = 0,
    book: Path | None = None,
    tell: Tell | None = None,
) -> Overlaps:
    """Locates on two halves of every data set and compares all of them.

    Halves are compared with halves, across data sets as within one, so that every set rests on as
    many items.

    Args:
        neurons: The model.
        data: The data sets; those of equal capability are told apart from the others.
        rule: Which neurons stand out.
        steps: Steps of the integrated gradients.
        seed: Seed of the cut into halves.
        book: File of item scores, for resuming.
        tell: Receives how far it is.
    """
    located: list[tuple[str, QuestionSet, np.ndarray]] = []
    for questions in data:
        for half in questions.halves(seed=seed):
            found = item_scores(neurons, half, steps=steps, book=book, tell=tell)
            columns = commonality_set(found.scores, neurons.layers, rule)
            located.append((questions.name, half, columns))
    pairs = []
    for number, (name, half, columns) in enumerate(located):
        for other_name, other, other_columns in located[number + 1 :]:
            relation = "other capability"
            if name == other_name:
                relation = "same data"
            elif half.capability == other.capability:
                relation = "same capability"
            shared = overlap(columns, other_columns, neurons=len(neurons))
            sizes = (len(columns), len(other_columns))
            pairs.append(Compared(half.name, other.name, relation, sizes, shared))
    summary = {}
    for relation in ("same data", "same capability", "other capability"):
        own = [pair.overlap for pair in pairs if pair.relation == relation]
        if own:
            summary[relation] = {
                measure: _mean([getattr(one, measure) for one in own]) for measure in _MEASURES
            }
    return Overlaps(tuple(one.name for one in data), tuple(pairs), summary)


def _mean(values: list[float]) -> float:
    """The mean of what is known; NaN if nothing is."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
