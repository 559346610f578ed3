"""Locates neurons by random ablation at every token, a method of broca.

`masked-gradient` ablates a random share of all neurons in every row, at every token, and averages
the gradient of the answer's log-probability with respect to every neuron's gate. It measures the
effect of each neuron while others are ablated, so that a saturated probability does not hide it.

The searches of `localize` run from coarse to fine: a component is a group of neurons, a plan's
masks apply to all neurons of a group, and the selected groups are split into smaller groups for the
next level, until the groups are small enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.neurons.selection import EMPTY, Columns, item_set
from broca.neurons.sets import require_one_of
from broca.options import MethodOptions
from broca.searches import Problem

if TYPE_CHECKING:
    from broca.neurons.neuron_model import NeuronModel
    from broca.neurons.neuron_run import ItemPlaces, NeuronRun

SCREEN = "masked-gradient"
"""The search that averages gradients under random masks."""


@dataclass(frozen=True)
class SensingOptions:
    """Options of the search for neurons.

    Attributes:
        method: `masked-gradient`, or the search of every level, a key of `broca.searches.METHODS`.
        rows: Total number of (mask, item) rows, a row with its gradient counted as three; None
            stands for the cost of integrated gradients on the same data set.
        rate: With `masked-gradient`, the share of neurons that a row ablates.
        groups: Number of groups of the first level.
        split: Number of parts into which a selected group is split for the next level.
        keep: Maximum number of groups that a level selects.
        smallest: Size of groups at which splitting ends.
        items: Maximum number of items of a level, because more masks are worth more than more
            items.
        sparsity: Share of the groups that a mask ablates. It is higher than for heads, because a
            saturated probability hides single groups.

    Raises:
        BadInput: A value is out of range.
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
        """Returns the options of sensing among the options of a verb."""
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
    """A level of the search.

    Attributes:
        groups: Number of groups.
        size: Number of neurons of the largest group.
        selected: Number of selected groups.
        rows: Number of requested rows.
    """

    groups: int
    size: int
    selected: int
    rows: int


@dataclass(frozen=True)
class Sensed:
    """The result of the search.

    Attributes:
        columns: The selected neurons, sorted; none if the search abstained.
        scores: The mean gradient of each gate, or minus the effect of ablating each neuron's group,
            divided by its size, from the finest level that measured it (0 without evidence),
            `(neurons,)`.
        levels: The levels from coarse to fine; none with `masked-gradient`.
        rows: Number of requested rows.
    """

    columns: Columns
    scores: NDArray[np.float64]
    levels: tuple[Level, ...]
    rows: int


def sense(run: NeuronRun, places: ItemPlaces, options: SensingOptions) -> Sensed:
    """Finds the neurons whose ablation lowers the log-probability of a task's gold answers most.

    Args:
        run: The run. Its rule selects the scores of `masked-gradient`; a count selects that many of
            the highest scores.
        places: The items.
        options: Options of the search.

    Raises:
        BadInput: The budget does not allow a level.
    """
    layers, rule = run.neurons.layers, run.rule
    total = sensed_rows(run, places, options)
    if options.method == SCREEN:
        scores = _screened(run, places, options, total // 3)
        return Sensed(item_set(scores, layers, rule), scores, (), total)
    scores, columns, levels = _coarse_to_fine(run, places, options, total)
    if rule.count is not None:
        best = np.argsort(-scores, kind="stable")[: rule.count]
        columns = np.sort(best[scores[best] > 0])
    return Sensed(columns, scores, levels, sum(level.rows for level in levels))


def sensed_rows(run: NeuronRun, places: ItemPlaces, options: SensingOptions) -> int:
    """Returns the maximum number of rows of `sense`; a row with its gradient counts as three."""
    total = options.rows or equal_rows(run, places)
    return total // 3 * 3 if options.method == SCREEN else total


_ROWS_AT_ONCE = 256
"""Number of rows whose gradients are in memory at once: a model may have a million neurons."""


def _screened(
    run: NeuronRun, places: ItemPlaces, options: SensingOptions, rows: int
) -> NDArray[np.float64]:
    """Measures the mean gradient of every neuron's gate under random masks, `(neurons,)`.

    Raises:
        BadInput: The budget does not allow one row.
    """
    if rows < 1:
        raise BadInput("`rows` must be at least 3: a row with its gradient counts as three")
    count = len(run.neurons)
    total = np.zeros(count)
    for start in range(0, rows, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, rows))
        draws = (
            np.random.default_rng([run.seed, 23, row]).random(count) for row in numbers.tolist()
        )
        sets = [np.flatnonzero(draw < options.rate) for draw in draws]
        slopes = run.slopes(places[numbers % len(places)], sets)
        total += slopes.sum(axis=0, dtype=np.float64)
    return total / rows


def _coarse_to_fine(
    run: NeuronRun, places: ItemPlaces, options: SensingOptions, total: int
) -> tuple[NDArray[np.float64], Columns, tuple[Level, ...]]:
    """Searches groups, splits the selected ones, and searches again."""
    places = places[: options.items]
    rng = np.random.default_rng([run.seed, 13])
    groups = first_groups(run.neurons, options.groups, rng)
    depth = _depth(max(len(group) for group in groups), options)
    scores = np.zeros(len(run.neurons))
    levels: list[Level] = []
    remaining = total
    while True:
        budget = max(remaining // max(depth - len(levels), 1), 1)
        search = _GroupSearch(run, groups)
        ranking = search.rank(places, options, budget, run.seed + len(levels))
        remaining -= search.rows
        for group, effect in zip(groups, ranking.effects, strict=True):
            scores[group] = max(0.0, -float(effect)) / len(group)
        selected = [groups[column] for column in ranking.selected]
        size = max(len(group) for group in groups)
        levels.append(Level(len(groups), size, len(selected), search.rows))
        if not selected or size <= options.smallest:
            break
        groups = [part for group in selected for part in _parts(group, options, rng)]
    columns = np.sort(np.concatenate(selected)) if selected else EMPTY
    return scores, columns, tuple(levels)


def equal_rows(run: NeuronRun, places: ItemPlaces) -> int:
    """Returns the number of rows that cost the same as integrated gradients over some items.

    The cost is counted in tokens that pass through all layers; a backward pass counts as two
    forward passes. A row reads its whole sequence once; a step runs one token forward and back
    through the layers from the scaled layer up.
    """
    golds = run.golds(places)
    reads = sum(len(gold.context) + len(gold.continuation) for gold in golds)
    answers = sum(len(gold.continuation) for gold in golds)
    tokens = reads + 3 * answers * (run.rule.steps + 1) * run.neurons.upward
    return max(1, round(tokens * len(places) / reads))


def first_groups(neurons: NeuronModel, count: int, rng: np.random.Generator) -> list[Columns]:
    """Divides every layer's neurons at random into groups of similar size, `count` in total.

    Every layer has at least one group.
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
    """Returns the number of levels until groups of `size` neurons are small enough."""
    depth = 1
    while size > options.smallest:
        size, depth = -(-size // options.split), depth + 1
    return depth


class _GroupSearch:
    """A search whose components are groups of neurons.

    Args:
        run: The run.
        groups: The groups.
    """

    def __init__(self, run: NeuronRun, groups: list[Columns]) -> None:
        self._run = run
        self._groups = groups
        self.rows = 0
        """Number of requested rows so far."""

    def rank(
        self, places: ItemPlaces, options: SensingOptions, rows: int, seed: int
    ) -> searches.Ranking:
        """Ranks the groups by the loss of their ablation on some items."""
        count = len(self._groups)
        problem = Problem(count, places, min(options.keep, count), rows, seed)
        method = searches.require_method(options.method)
        # groups are searched without a contrast, with at least one group in a mask
        group_options = {"resamples": 0, "sparsity": max(options.sparsity, 1.001 / count)}
        supported = {name: value for name, value in group_options.items() if name in method.options}
        return searches.run(method.search(problem, supported), self._measure)

    def _measure(self, plan: Plan) -> Measurement:
        """Measures a plan over groups; its masks apply to all neurons of the groups."""
        sets = [
            np.concatenate([EMPTY, *(self._groups[column] for column in np.flatnonzero(mask))])
            for mask in plan.masks
        ]
        self.rows += len(plan)
        return Measurement(
            plan,
            self._run.log_probability(plan.item_index, sets, plan.mask_index, role="search"),
        )
