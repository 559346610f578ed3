"""Compressed sensing over neurons, coarse to fine: groups first, then the groups that matter.

The searches of the head path run unchanged: a component is a group of neurons, a plan's masks are
spread over the neurons of each group, and what a search selects is split into smaller groups for
the next level, until the groups are as small as wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput
from broca.neurons.effects import Measurer, Scaled
from broca.neurons.locating import NeuronModel
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns
from broca.plan import Measurement, Plan
from broca.searches import Problem


@dataclass(frozen=True)
class SensingOptions:
    """How groups of neurons are searched.

    Attributes:
        groups: Groups of the first level.
        split: Parts into which a selected group is split for the next level.
        keep: Groups that a level hands on, at most.
        smallest: Neurons of the groups at which splitting ends.
        method: The search of every level, a key of `broca.searches.METHODS`.
        rows: (mask, question) rows of all levels together; as many as cost what integrated
            gradients cost on the same data set if None.
        items: Most questions to search on.
        sparsity: Share of the groups that a mask ablates.

    Raises:
        BadInput: A value out of range.
    """

    groups: int = 96
    split: int = 4
    keep: int = 12
    smallest: int = 1
    method: str = "cs-stratified"
    rows: int | None = None
    items: int = 20
    sparsity: float = 0.05

    def __post_init__(self) -> None:
        for name in ("groups", "keep", "smallest", "rows", "items"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} must be at least 1, not {value}")
        if self.split < 2:
            raise BadInput(f"split must be at least 2, not {self.split}")
        searches.require_method(self.method)


@dataclass(frozen=True)
class Level:
    """One level of the search.

    Attributes:
        groups: Groups searched.
        size: Neurons of the largest.
        kept: Groups handed on.
        rows: Rows measured.
    """

    groups: int
    size: int
    kept: int
    rows: int


@dataclass(frozen=True)
class Sensed:
    """What the search found.

    Attributes:
        columns: Neurons of the selected groups, sorted; none where the search abstained.
        scores: Minus the effect of ablating each neuron's group, shared among its neurons, from
            the finest level that measured it, `(neurons,)`; 0 where it had no evidence.
        levels: The levels, coarse first.
        rows: Rows measured.
        tokens: Tokens read.
    """

    columns: Columns
    scores: NDArray[np.float64]
    levels: tuple[Level, ...]
    rows: int
    tokens: int


def sense(
    neurons: NeuronModel,
    questions: QuestionSet,
    *,
    measurer: Measurer,
    options: SensingOptions | None = None,
    count: int | None = None,
    steps: int = 19,
    seed: int = 0,
) -> Sensed:
    """Finds the neurons whose ablation costs a data set most log-probability of its gold answers.

    Args:
        neurons: The model.
        questions: The data set.
        measurer: Asks the questions.
        options: How to search.
        count: Take the so many neurons of the best groups at the end; all of the kept ones if None.
        steps: Steps of the integrated gradients whose cost decides the number of rows.
        seed: Seed of groups and masks.

    Raises:
        BadInput: The budget does not allow a level.
    """
    options = options or SensingOptions()
    total = options.rows or equal_rows(neurons, questions, steps=steps)
    questions = questions.take(range(min(options.items, len(questions))))
    first_rows, first_tokens = measurer.rows, measurer.tokens
    rng = np.random.default_rng([seed, 13])
    groups = first_groups(neurons, options.groups, rng)
    depth = _depth(max(len(one) for one in groups), options)
    scores = np.zeros(len(neurons))
    levels: list[Level] = []
    while True:
        left = total - (measurer.rows - first_rows)
        budget = max(left // (depth - len(levels)), 1) if depth > len(levels) else left
        before = measurer.rows
        ranking = _search(groups, questions, measurer, options, budget, seed + len(levels))
        for group, effect in zip(groups, ranking.effects, strict=True):
            scores[group] = max(0.0, -float(effect)) / len(group)
        kept = [groups[column] for column in ranking.selected]
        size = max(len(one) for one in groups)
        levels.append(Level(len(groups), size, len(kept), measurer.rows - before))
        if not kept or size <= options.smallest:
            break
        groups = [part for one in kept for part in _parts(one, options, rng)]
    columns = np.sort(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.intp)
    if count is not None:
        best = np.argsort(-scores, kind="stable")[:count]
        columns = np.sort(best[scores[best] > 0])
    return Sensed(
        columns, scores, tuple(levels), measurer.rows - first_rows, measurer.tokens - first_tokens
    )


def equal_rows(neurons: NeuronModel, questions: QuestionSet, *, steps: int) -> int:
    """Rows that cost as much as integrated gradients over a data set.

    Cost is counted in tokens that pass through all layers, a way back as two ways forth: a row
    reads its whole sequence once; a step runs one token through the layers from the scaled one up
    and back.
    """
    depth = neurons.model.structure.layers
    upward = sum((depth - block.layer) / depth for block in neurons.blocks)
    reads = sum(len(one.gold.context) + len(one.gold.continuation) for one in questions.questions)
    answers = sum(len(one.gold.continuation) for one in questions.questions)
    tokens = reads + 3 * answers * (steps + 1) * upward
    return max(1, round(tokens * len(questions) / reads))


def first_groups(neurons: NeuronModel, count: int, rng: np.random.Generator) -> list[Columns]:
    """Cuts every layer's neurons at random into groups of nearly one size, `count` in all.

    Every layer gives at least one group.
    """
    groups: list[Columns] = []
    for layer in np.unique(neurons.layers):
        own = rng.permutation(np.flatnonzero(neurons.layers == layer))
        parts = min(len(own), max(1, round(count * len(own) / len(neurons))))
        groups += [np.sort(part) for part in np.array_split(own, parts)]
    return groups


def _parts(group: Columns, options: SensingOptions, rng: np.random.Generator) -> list[Columns]:
    count = min(options.split, max(1, -(-len(group) // options.smallest)))
    return [np.sort(part) for part in np.array_split(rng.permutation(group), count) if len(part)]


def _depth(size: int, options: SensingOptions) -> int:
    """Levels until groups of `size` neurons are small enough."""
    depth = 1
    while size > options.smallest:
        size, depth = -(-size // options.split), depth + 1
    return depth


def _search(
    groups: list[Columns],
    questions: QuestionSet,
    measurer: Measurer,
    options: SensingOptions,
    rows: int,
    seed: int,
) -> searches.Ranking:
    def execute(plan: Plan) -> Measurement:
        sets = [
            Scaled(
                np.concatenate([groups[column] for column in np.flatnonzero(mask)])
                if mask.any()
                else np.zeros(0, dtype=np.intp)
            )
            for mask in plan.masks
        ]
        asked = [questions.questions[position] for position in plan.item_index]
        answers = measurer.rows_under(
            asked, sets, plan.mask_index, scored=False, stage=f"searching {len(groups)} groups"
        )
        return Measurement(plan, answers.log_probability)

    items = np.arange(len(questions))
    problem = Problem(len(groups), items, min(options.keep, len(groups)), rows, seed)
    # at least one group a mask, however few are left
    sparsity = max(options.sparsity, 1.001 / len(groups))
    extra = {"sparsity": sparsity} if options.method.startswith("cs-") else {}
    search = searches.make_search(options.method, problem, **extra)
    return searches.run(search, execute)
