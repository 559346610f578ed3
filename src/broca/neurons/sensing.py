"""Neurons found by random ablation, broca's own way: no path of activations, no last token alone.

`masked-gradient` ablates a random share of all neurons in every row, at every token, and averages
the gradient of the answer's log-probability with respect to every neuron's gate: what each neuron
is worth where others are missing, so that a sure model does not hide it.

The searches of the head path run coarse to fine: a component is a group of neurons, a plan's masks
are spread over the neurons of each group, and what a search selects is split into smaller groups
for the next level, until the groups are as small as wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput, nearest
from broca.measurement import Measurement, Plan
from broca.neurons.effects import Measurer, Scaled
from broca.neurons.locating import NeuronModel
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns, Rule, item_set
from broca.searches import Problem

SCREEN = "masked-gradient"
"""The search that averages gradients under random masks."""


@dataclass(frozen=True)
class SensingOptions:
    """How neurons are searched.

    Attributes:
        method: `masked-gradient`, or the search of every level: a key of `broca.searches.METHODS`.
        rows: (mask, question) rows in all, a row with its gradient counted as three; as many as
            cost what integrated gradients cost on the same data set if None.
        rate: With `masked-gradient`, the share of neurons that a row ablates.
        groups: Groups of the first level.
        split: Parts into which a selected group is split for the next level.
        keep: Groups that a level hands on, at most.
        smallest: Neurons of the groups at which splitting ends.
        items: Most questions of a level: masks are worth more than questions.
        sparsity: Share of the groups that a mask ablates. A sure model hides single groups, so it
            is higher than for heads.

    Raises:
        BadInput: A value out of range.
    """

    method: str = SCREEN
    rows: int | None = None
    rate: float = 0.15
    groups: int = 96
    split: int = 4
    keep: int = 24
    smallest: int = 1
    items: int = 10
    sparsity: float = 0.3

    def __post_init__(self) -> None:
        for name in ("groups", "keep", "smallest", "rows", "items"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} must be at least 1, not {value}")
        if self.split < 2:
            raise BadInput(f"split must be at least 2, not {self.split}")
        for name in ("rate", "sparsity"):
            if not 0 < getattr(self, name) < 1:
                raise BadInput(f"{name} must lie between 0 and 1, not at {getattr(self, name):g}")
        if self.method != SCREEN and self.method not in searches.METHODS:
            known = (SCREEN, *searches.METHODS)
            raise BadInput(
                f"--search '{self.method}' is unknown{nearest(self.method, known)}; use "
                f"{', '.join(known)}"
            )


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
        columns: The selected neurons, sorted; none where the search abstained.
        scores: `(neurons,)`: the mean gradient of each gate; or minus the effect of ablating each
            neuron's group, shared among its neurons, from the finest level that measured it, 0
            where it had no evidence.
        levels: The levels, coarse first; none with `masked-gradient`.
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
    rule: Rule | None = None,
    steps: int = 19,
    seed: int = 0,
) -> Sensed:
    """Finds the neurons whose ablation costs a data set most log-probability of its gold answers.

    Args:
        neurons: The model.
        questions: The data set.
        measurer: Asks the questions.
        options: How to search.
        rule: Which scores stand out (`masked-gradient`); a count takes the so many best scores.
        steps: Steps of the integrated gradients whose cost decides the number of rows.
        seed: Seed of groups and masks.

    Raises:
        BadInput: The budget does not allow a level.
    """
    options, rule = options or SensingOptions(), rule or Rule()
    total = options.rows or equal_rows(neurons, questions, steps=steps)
    first_rows, first_tokens = measurer.rows, measurer.tokens
    levels: tuple[Level, ...] = ()
    if options.method == SCREEN:
        scores = _screened(neurons, questions, measurer, options, total // 3, seed)
        columns = item_set(scores, neurons.layers, rule)
    else:
        scores, columns, levels = _coarse_to_fine(
            neurons, questions, measurer, options, total, seed
        )
        if rule.count is not None:
            best = np.argsort(-scores, kind="stable")[: rule.count]
            columns = np.sort(best[scores[best] > 0])
    return Sensed(
        columns, scores, levels, measurer.rows - first_rows, measurer.tokens - first_tokens
    )


_ROWS_AT_ONCE = 256
"""Rows whose gradients are held at once: a model may have a million neurons."""


def _screened(
    neurons: NeuronModel,
    questions: QuestionSet,
    measurer: Measurer,
    options: SensingOptions,
    rows: int,
    seed: int,
) -> NDArray[np.float64]:
    """Mean gradient of every neuron's gate under random masks, `(neurons,)`.

    Raises:
        BadInput: Not one row fits the budget.
    """
    if rows < 1:
        raise BadInput("--rows must be at least 3: a row with its gradient counts as three")
    total = np.zeros(len(neurons))
    for start in range(0, rows, _ROWS_AT_ONCE):
        numbers = range(start, min(start + _ROWS_AT_ONCE, rows))
        sets = [
            Scaled(
                np.flatnonzero(
                    np.random.default_rng([seed, 23, number]).random(len(neurons)) < options.rate
                )
            )
            for number in numbers
        ]
        asked = [questions.questions[number % len(questions)] for number in numbers]
        gradients = measurer.gradients_under(asked, sets, range(len(sets)))
        total += gradients.sum(axis=0, dtype=np.float64)
    return total / rows


def _coarse_to_fine(
    neurons: NeuronModel,
    questions: QuestionSet,
    measurer: Measurer,
    options: SensingOptions,
    total: int,
    seed: int,
) -> tuple[NDArray[np.float64], Columns, tuple[Level, ...]]:
    """Searches groups, splits what was selected, and searches again."""
    questions = questions.take(range(min(options.items, len(questions))))
    first_rows = measurer.rows
    rng = np.random.default_rng([seed, 13])
    groups = first_groups(neurons, options.groups, rng)
    depth = _depth(max(len(one) for one in groups), options)
    scores = np.zeros(len(neurons))
    levels: list[Level] = []
    while True:
        left = total - (measurer.rows - first_rows)
        budget = max(left // max(depth - len(levels), 1), 1)
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
    return scores, columns, tuple(levels)


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
    method = searches.require_method(options.method)
    # groups are searched for their effects alone
    wanted = {"resamples": 0, "sparsity": sparsity}
    taken = {name: value for name, value in wanted.items() if name in method.options}
    return searches.run(method.search(problem, taken), execute)
