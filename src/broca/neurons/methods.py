"""The methods of selecting neurons, and the rules and random sets that they share.

A method is a record in `NEURON_METHODS`, whose names the command line shows: importing this module
does not load torch.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, require_known
from broca.options import DrawOptions, RuleOptions

if TYPE_CHECKING:
    from broca.neurons.gradients import ItemScores
    from broca.neurons.neuron_run import NeuronRun

Columns = NDArray[np.intp]
"""Neurons by their column, sorted."""

EMPTY: Columns = np.zeros(0, dtype=np.intp)
"""No neurons, or no items."""

Scores = NDArray[np.float64]

_OF_HIGHEST, _OF_ITEMS = 0.2, 0.4
"""The two thresholds of knowledge neurons, which are published."""


def standardized(scores: NDArray[np.floating]) -> Scores:
    """Returns scores in standard deviations above their mean, `(neurons,)`; zeros if all equal."""
    values = np.asarray(scores, dtype=np.float64)
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values)


def outstanding(scores: NDArray[np.floating], rule: RuleOptions) -> Columns:
    """Returns the neurons that stand out in a vector of scores, sorted."""
    standard = standardized(scores)
    if rule.count is not None:
        return _first(np.argsort(-standard, kind="stable"), rule.count)
    return np.flatnonzero(standard > rule.sigma)


def _first(order: Columns, count: int) -> Columns:
    if count > len(order):
        raise BadInput(f"`count` {count} is more than the model's {len(order)} neurons")
    return np.sort(order[:count])


def random_sets(
    columns: Columns, layers: NDArray[np.intp], options: DrawOptions, *, seed: int
) -> list[Columns]:
    """Draws random sets that are disjoint from a set and of its size, or of its size in each layer.

    Args:
        columns: The set to match, whose members are not drawn.
        layers: Layer of every neuron, `(neurons,)`.
        options: How many sets are drawn, and what they match.
        seed: Seed of the run.

    Raises:
        BadInput: There are too few other neurons.
    """
    digest = zlib.crc32(np.sort(columns).tobytes())
    free = np.setdiff1d(np.arange(len(layers)), columns)
    groups = layers if options.matching == "layer" else np.zeros_like(layers)
    counts = Counter(groups[columns].tolist())
    pools = [(free[groups[free] == group], counts[group]) for group in sorted(counts)]
    for pool, count in pools:
        if len(pool) < count:
            raise BadInput(
                f"{count} neurons are located and only {len(pool)} others are left to draw "
                "random ones from: raise `sigma` or lower `count`"
            )
    sets = []
    for draw in range(options.draws):
        rng = np.random.default_rng([seed, draw, digest])
        drawn = [rng.choice(pool, count, replace=False) for pool, count in pools]
        sets.append(np.sort(np.concatenate(drawn)))
    return sets


@dataclass(frozen=True)
class Choice:
    """The neurons that a method selected.

    Attributes:
        scores: Scores of the selection, `(neurons,)`; higher scores are selected.
        columns: The selected neurons, sorted.
        items: Scores of the items; None if the method needs none.
    """

    scores: Scores
    columns: Columns
    items: ItemScores | None = None


@dataclass(frozen=True)
class NeuronMethod:
    """The record of a method of selecting neurons.

    Attributes:
        help: The score of a neuron, for the docs.
        select: Selects the neurons of a task of a run.
        compares: Whether it compares with the other tasks of the run.
    """

    help: str
    select: Callable[[NeuronRun, str], Choice]
    compares: bool = False


def require_neuron_method(method: str) -> NeuronMethod:
    """Returns the record of a method.

    Raises:
        BadInput: The method does not exist.
    """
    require_known("`method`", method, NEURON_METHODS, error=BadInput)
    return NEURON_METHODS[method]


def choose_neurons(
    run: NeuronRun, task: str, method: str = "cnl", *, required: bool = False
) -> Choice:
    """Selects the neurons of a task on its `locate` items.

    Args:
        run: The run; if its rule has a count, every method selects that many.
        task: The task.
        method: Name of a method in `NEURON_METHODS`.
        required: Whether an empty selection is refused.

    Raises:
        BadInput: The method is unknown, what it needs is missing, or no neuron is selected although
            some are required.
    """
    record = require_neuron_method(method)
    if record.compares and len(run.names) < 2:
        raise BadInput(f"`method` {method} compares with other tasks: name some in `others`")
    run.run.stages.enter(f"scoring neurons on {task}")
    choice = record.select(run, task)
    if required and not len(choice.columns):
        raise BadInput(
            f"no neuron stands out on '{task}' by {method}: lower `sigma` or give `count`"
        )
    return choice


def _commonality(run: NeuronRun, task: str, *, integrated: bool = True) -> Choice:
    items = run.item_scores(run.places(task), integrated=integrated)
    mean = items.scores.mean(axis=0).astype(np.float64)
    return Choice(mean, outstanding(mean, run.rule), items)


def _knowledge(run: NeuronRun, task: str) -> Choice:
    """Selects by the share of items on which a score exceeds a share of the item's highest."""
    items, count = run.item_scores(run.places(task)), run.rule.count
    highest = items.scores.max(axis=1, keepdims=True)
    votes = ((items.scores > _OF_HIGHEST * highest) & (highest > 0)).mean(axis=0)
    columns = np.flatnonzero(votes > _OF_ITEMS)
    if count is not None:
        # many votes are equal: the mean score decides between them
        columns = _first(np.lexsort((-items.scores.mean(axis=0), -votes)), count)
    return Choice(votes.astype(np.float64), columns, items)


def _activation(run: NeuronRun, task: str) -> Choice:
    """Selects by |difference of the mean activations| in pooled standard deviations."""
    names = (task, *(name for name in run.names if name != task))
    items, *others = [run.item_scores(run.places(name), integrated=False) for name in names]
    compared = items.activations, np.concatenate([other.activations for other in others])
    if min(map(len, compared)) < 2:
        raise BadInput(
            "`method` activation needs two items of the task and of others: more `items`"
        )
    first, second = (activations.mean(axis=0, dtype=np.float64) for activations in compared)
    variances = [activations.var(axis=0, dtype=np.float64) for activations in compared]
    spread = np.maximum(np.sqrt(sum(variances) / 2), 1e-12)
    scores = np.asarray(np.abs(first - second) / spread, dtype=np.float64)
    return Choice(scores, outstanding(scores, run.rule), items)


def _random(run: NeuronRun, _task: str) -> Choice:
    neurons, count = len(run.neurons), run.rule.count
    if count is None:
        raise BadInput("method 'random' draws a number of neurons: give `count`")
    scores = np.random.default_rng([run.seed, 5]).random(neurons)
    return Choice(scores, _first(np.argsort(-scores), count))


NEURON_METHODS = {
    "cnl": NeuronMethod("commonality neurons: the integrated gradient of p(answer)", _commonality),
    "knowledge-neurons": NeuronMethod(
        "the share of items whose integrated gradient exceeds a share of the item's highest",
        _knowledge,
    ),
    "activation": NeuronMethod(
        "the difference of its mean activation from other tasks, in standard deviations",
        _activation,
        compares=True,
    ),
    "gradient": NeuronMethod(
        "gradient x activation: the integrated gradient in one step",
        partial(_commonality, integrated=False),
    ),
    "random": NeuronMethod("a random number; draws a given number", _random),
}
"""Every method of selecting neurons by the name that `method` accepts."""
