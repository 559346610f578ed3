"""The methods of selecting neurons: commonality neurons and others for comparison.

A method is a record in `NEURON_METHODS`, whose names the command line shows: importing this module
does not load torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, nearest
from broca.neurons.selection import Columns, commonality_set, data_set_scores, standardized
from broca.options import MethodOptions, RuleOptions

if TYPE_CHECKING:
    from broca.neurons.gradients import ItemScores
    from broca.neurons.neuron_run import ItemPlaces, NeuronRun

    Selected = tuple[NDArray[np.float64], Columns, ItemScores | None]


@dataclass(frozen=True)
class NeuronMethod:
    """The record of a method of selecting neurons.

    Attributes:
        help: The score of a neuron, for the docs.
        select: Returns the scores of all neurons, `(neurons,)`, the selected neurons, sorted, and
            the scores of the items, if it has any. It takes the run, the items, the items of other
            tasks and the options of the methods.
        compares: Whether it compares with other tasks.
    """

    help: str
    select: Callable[[NeuronRun, ItemPlaces, Sequence[ItemPlaces], MethodOptions], Selected]
    compares: bool = False


@dataclass(frozen=True)
class Choice:
    """The neurons that a method selected.

    Attributes:
        method: The method.
        scores: Scores of the selection, `(neurons,)`; higher scores are selected.
        columns: The selected neurons, sorted.
        items: Scores of the items; None if the method needs none.
    """

    method: str
    scores: NDArray[np.float64]
    columns: Columns
    items: ItemScores | None = None


def require_neuron_method(method: str) -> NeuronMethod:
    """Returns the record of a method.

    Raises:
        BadInput: The method does not exist.
    """
    if method not in NEURON_METHODS:
        raise BadInput(
            f"`method` '{method}' is unknown{nearest(method, NEURON_METHODS)}; use "
            f"{', '.join(NEURON_METHODS)}"
        )
    return NEURON_METHODS[method]


def choose_neurons(
    run: NeuronRun,
    task: str,
    *,
    method: str = "cnl",
    options: MethodOptions | None = None,
    contrast: Sequence[str] = (),
) -> Choice:
    """Selects the neurons of a task on its `locate` items.

    Args:
        run: The run; if its rule has a count, every method selects that many.
        task: The task.
        method: Name of a method in `NEURON_METHODS`.
        options: Options of individual methods.
        contrast: Other tasks of the run, for methods that compare.

    Raises:
        BadInput: The method is unknown, or a parameter that it needs is missing.
    """
    record = require_neuron_method(method)
    if record.compares and not contrast:
        raise BadInput(f"`method` {method} compares with other tasks: name some in `others`")
    run.stages.enter(f"scoring neurons on {task}")
    others = [run.places(name) for name in contrast] if record.compares else []
    return Choice(method, *record.select(run, run.places(task), others, options or MethodOptions()))


def require_some(choice: Choice, task: str) -> Choice:
    """Refuses an empty selection.

    Raises:
        BadInput: No neuron is selected.
    """
    if not len(choice.columns):
        raise BadInput(
            f"no neuron stands out on '{task}' by {choice.method}: lower `sigma` or give `count`"
        )
    return choice


def _best(scores: NDArray[np.float64], layers: NDArray[np.intp], rule: RuleOptions) -> Columns:
    """Returns the neurons that stand out in a data set's scores."""
    if rule.count is not None:
        return np.sort(np.argsort(-scores, kind="stable")[: rule.count])
    return np.flatnonzero(standardized(scores, layers, rule.scope) > rule.sigma)


def _commonality(
    run: NeuronRun,
    places: ItemPlaces,
    _others: Sequence[ItemPlaces],
    _options: MethodOptions,
    *,
    integrated: bool = True,
) -> Selected:
    items, layers = run.item_scores(places, integrated=integrated), run.neurons.layers
    scores = data_set_scores(items.scores, layers, run.rule)
    return scores, commonality_set(items.scores, layers, run.rule), items


def _knowledge(
    run: NeuronRun, places: ItemPlaces, _others: Sequence[ItemPlaces], options: MethodOptions
) -> Selected:
    """Selects the neurons whose scores are high on enough items."""
    items, count = run.item_scores(places), run.rule.count
    highest = items.scores.max(axis=1, keepdims=True)
    votes = ((items.scores > options.threshold * highest) & (highest > 0)).mean(axis=0)
    columns = np.flatnonzero(votes > options.knowledge_share)
    if count is not None:
        # many votes are equal: the mean score decides between them
        order = np.lexsort((-items.scores.mean(axis=0), -votes))[:count]
        columns = np.sort(order[votes[order] > 0])
    return votes.astype(np.float64), columns, items


def _activation(
    run: NeuronRun, places: ItemPlaces, others: Sequence[ItemPlaces], _options: MethodOptions
) -> Selected:
    """Selects by |difference of the mean activations| in pooled standard deviations."""
    items = run.item_scores(places, integrated=False)
    compared = (
        items.activations,
        np.concatenate([run.item_scores(other, integrated=False).activations for other in others]),
    )
    first, second = (activations.mean(axis=0, dtype=np.float64) for activations in compared)
    variances = [activations.var(axis=0, dtype=np.float64) for activations in compared]
    difference, spread = first - second, np.sqrt(sum(variances) / 2)
    scores = np.asarray(np.abs(difference) / np.maximum(spread, 1e-12), dtype=np.float64)
    return scores, _best(scores, run.neurons.layers, run.rule), items


def _random(
    run: NeuronRun, _places: ItemPlaces, _others: Sequence[ItemPlaces], _options: MethodOptions
) -> Selected:
    neurons, count = run.neurons, run.rule.count
    if count is None:
        raise BadInput("`method` random draws a number of neurons: give `count`")
    if count > len(neurons):
        raise BadInput(f"`count` {count} is more than the model's {len(neurons)} neurons")
    scores = np.random.default_rng([run.seed, 5]).random(len(neurons))
    return scores, _best(scores, neurons.layers, run.rule), None


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
