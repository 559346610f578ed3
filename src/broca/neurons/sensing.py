"""Neurons by random ablation, a method of broca: no path of activations, and at every token.

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
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import INTACT, NeuronRun, Places
from broca.neurons.selection import Columns, item_set
from broca.neurons.sets import require_one_of
from broca.options import MethodOptions
from broca.searches import Problem

SCREEN = "masked-gradient"
"""The search that averages gradients under random masks."""


@dataclass(frozen=True)
class SensingOptions:
    """How neurons are searched.

    Attributes:
        method: `masked-gradient`, or the search of every level: a key of `broca.searches.METHODS`.
        rows: (mask, item) rows in all, a row with its gradient counted as three; as many as
            cost what integrated gradients cost on the same data set if None.
        rate: With `masked-gradient`, the share of neurons that a row ablates.
        groups: Groups of the first level.
        split: Parts into which a selected group is split for the next level.
        keep: Groups that a level hands on, at most.
        smallest: Neurons of the groups at which splitting ends.
        items: Maximum number of items of a level: masks are worth more than items.
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

    @classmethod
    def of(cls, options: MethodOptions) -> SensingOptions:
        """What the options of a verb say of it."""
        return cls(options.search, options.rows)

    def __post_init__(self) -> None:
        for name in ("groups", "keep", "smallest", "rows", "items"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"`{name}` must be at least 1, not {value}")
        if self.split < 2:
            raise BadInput(f"`split` must be at least 2, not {self.split}")
        for name in ("rate", "sparsity"):
            if not 0 < getattr(self, name) < 1:
                raise BadInput(f"`{name}` must lie between 0 and 1, not at {getattr(self, name):g}")
        require_one_of("search", self.method, (SCREEN, *searches.METHODS))


@dataclass(frozen=True)
class Level:
    """One level of the search.

    Attributes:
        groups: Groups searched.
        size: Neurons of the largest.
        kept: Groups handed on.
        rows: Rows asked for.
    """

    groups: int
    size: int
    kept: int
    rows: int


@dataclass(frozen=True)
class Sensed:
    """The result of the search.

    Attributes:
        columns: The selected neurons, sorted; none where the search abstained.
        scores: `(neurons,)`: the mean gradient of each gate; or minus the effect of ablating each
            neuron's group, shared among its neurons, from the finest level that measured it, 0
            where it had no evidence.
        levels: The levels, coarse first; none with `masked-gradient`.
        rows: Rows asked for.
    """

    columns: Columns
    scores: NDArray[np.float64]
    levels: tuple[Level, ...]
    rows: int


def sense(run: NeuronRun, places: Places, options: SensingOptions) -> Sensed:
    """Finds the neurons whose ablation costs a task most log-probability of its gold answers.

    Args:
        run: Measures. Its rule says which scores stand out (`masked-gradient`); a count takes that
            many best scores.
        places: The items.
        options: How to search.

    Raises:
        BadInput: The budget does not allow a level.
    """
    layers, rule = run.neurons.layers, run.rule
    total = sensed_rows(run, places, options)
    if options.method == SCREEN:
        scores = _screened(run, places, options, total // 3, run.seed)
        return Sensed(item_set(scores, layers, rule), scores, (), total)
    scores, columns, levels = _coarse_to_fine(run, places, options, total, run.seed)
    if rule.count is not None:
        best = np.argsort(-scores, kind="stable")[: rule.count]
        columns = np.sort(best[scores[best] > 0])
    return Sensed(columns, scores, levels, sum(level.rows for level in levels))


def sensed_rows(run: NeuronRun, places: Places, options: SensingOptions) -> int:
    """The most rows that `sense` asks for; a row with its gradient counts as three."""
    total = options.rows or equal_rows(run, places)
    return total // 3 * 3 if options.method == SCREEN else total


_ROWS_AT_ONCE = 256
"""Rows whose gradients are held at once: a model may have a million neurons."""


def _screened(
    run: NeuronRun, places: Places, options: SensingOptions, rows: int, seed: int
) -> NDArray[np.float64]:
    """Mean gradient of every neuron's gate under random masks, `(neurons,)`.

    Raises:
        BadInput: Not one row fits the budget.
    """
    if rows < 1:
        raise BadInput("`rows` must be at least 3: a row with its gradient counts as three")
    count = len(run.neurons)
    total = np.zeros(count)
    for start in range(0, rows, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, rows))
        sets = [
            np.flatnonzero(np.random.default_rng([seed, 23, number]).random(count) < options.rate)
            for number in numbers.tolist()
        ]
        slopes = run.slopes(places[numbers % len(places)], sets)
        total += slopes.sum(axis=0, dtype=np.float64)
    return total / rows


def _coarse_to_fine(
    run: NeuronRun, places: Places, options: SensingOptions, total: int, seed: int
) -> tuple[NDArray[np.float64], Columns, tuple[Level, ...]]:
    """Searches groups, splits what was selected, and searches again."""
    places = places[: options.items]
    rng = np.random.default_rng([seed, 13])
    groups = first_groups(run.neurons, options.groups, rng)
    depth = _depth(max(len(group) for group in groups), options)
    scores = np.zeros(len(run.neurons))
    levels: list[Level] = []
    left = total
    while True:
        budget = max(left // max(depth - len(levels), 1), 1)
        search = _GroupSearch(run, groups)
        ranking = search.rank(places, options, budget, seed + len(levels))
        left -= search.rows
        for group, effect in zip(groups, ranking.effects, strict=True):
            scores[group] = max(0.0, -float(effect)) / len(group)
        handed_on = [groups[column] for column in ranking.selected]
        size = max(len(group) for group in groups)
        levels.append(Level(len(groups), size, len(handed_on), search.rows))
        if not handed_on or size <= options.smallest:
            break
        groups = [part for group in handed_on for part in _parts(group, options, rng)]
    columns = np.sort(np.concatenate(handed_on)) if handed_on else INTACT
    return scores, columns, tuple(levels)


def equal_rows(run: NeuronRun, places: Places) -> int:
    """Rows that cost as much as integrated gradients over some items.

    Cost is counted in tokens that pass through all layers, a way back as two ways forth: a row
    reads its whole sequence once; a step runs one token through the layers from the scaled one up
    and back.
    """
    golds = run.golds(places)
    reads = sum(len(gold.context) + len(gold.continuation) for gold in golds)
    answers = sum(len(gold.continuation) for gold in golds)
    tokens = reads + 3 * answers * (run.rule.steps + 1) * run.neurons.upward
    return max(1, round(tokens * len(places) / reads))


def first_groups(neurons: NeuronModel, count: int, rng: np.random.Generator) -> list[Columns]:
    """Cuts every layer's neurons at random into groups of nearly one size, `count` in all.

    Every layer gives at least one group.
    """
    groups: list[Columns] = []
    for layer in np.unique(neurons.layers):
        members = rng.permutation(np.flatnonzero(neurons.layers == layer))
        parts = min(len(members), max(1, round(count * len(members) / len(neurons))))
        groups += [np.sort(part) for part in np.array_split(members, parts)]
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


class _GroupSearch:
    """A search whose components are groups of neurons.

    Args:
        run: Measures.
        groups: The groups.
    """

    def __init__(self, run: NeuronRun, groups: list[Columns]) -> None:
        self._run = run
        self._groups = groups
        self.rows = 0
        """Rows asked for so far."""

    def rank(
        self, places: Places, options: SensingOptions, rows: int, seed: int
    ) -> searches.Ranking:
        """Ranks the groups by what their ablation costs on some items."""
        count = len(self._groups)
        problem = Problem(count, places, min(options.keep, count), rows, seed)
        method = searches.require_method(options.method)
        # groups are searched for their effects alone, at least one group a mask
        wanted = {"resamples": 0, "sparsity": max(options.sparsity, 1.001 / count)}
        taken = {name: value for name, value in wanted.items() if name in method.options}
        return searches.run(method.search(problem, taken), self._measure)

    def _measure(self, plan: Plan) -> Measurement:
        """Measures a plan over groups: its masks are spread over the groups' neurons."""
        sets = [
            np.concatenate([INTACT, *(self._groups[column] for column in np.flatnonzero(mask))])
            for mask in plan.masks
        ]
        self.rows += len(plan)
        return Measurement(
            plan,
            self._run.log_probability(plan.item_index, sets, plan.mask_index, role="search"),
        )
