"""The methods of selecting neurons: commonality neurons and others for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.expecting import scoring
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import ItemScores, NeuronRun
from broca.neurons.selection import Columns, commonality_set, data_set_scores, standardized
from broca.neurons.sensing import SensingOptions, sense
from broca.neurons.sets import require_one_of
from broca.options import MethodOptions, RuleOptions

Method = Literal["cnl", "knowledge-neurons", "activation", "gradient", "random", "sensing"]
"""Commonality neurons; knowledge neurons; difference of mean activations; gradient x activation;
random neurons; random ablation (`broca.neurons.sensing`)."""


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


def require_method(method: str, options: MethodOptions | None = None) -> None:
    """Refuses an unknown method, and options that sensing would refuse.

    Raises:
        BadInput: The method or the search does not exist.
    """
    require_one_of("method", method, get_args(Method))
    if options is not None:
        SensingOptions.of(options)


def choose(
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
        method: A `Method`.
        options: Options of individual methods.
        contrast: Other tasks of the run, for `activation`.

    Raises:
        BadInput: The method is unknown, or a parameter that it needs is missing.
    """
    require_method(method)
    options = options or MethodOptions()
    neurons, places, rule = run.neurons, run.places(task), run.rule
    if method == "random":
        return _random(neurons, rule, run.seed)
    run.stages.enter(scoring(task))
    if method == "sensing":
        sensed = sense(run, places, SensingOptions.of(options))
        return Choice(method, sensed.scores, sensed.columns)
    if method == "activation":
        if not contrast:
            raise BadInput("`method` activation compares with other tasks: name some in `others`")
        items = run.item_scores(places, integrated=False)
        others = [
            run.item_scores(run.places(name), integrated=False).activations for name in contrast
        ]
        scores = _mean_difference(items.activations, np.concatenate(others))
        return Choice(method, scores, _best(scores, neurons.layers, rule), items)
    items = run.item_scores(places, integrated=method != "gradient")
    if method == "knowledge-neurons":
        return _knowledge(items, rule, options)
    scores = data_set_scores(items.scores, neurons.layers, rule)
    return Choice(method, scores, commonality_set(items.scores, neurons.layers, rule), items)


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


def _knowledge(items: ItemScores, rule: RuleOptions, options: MethodOptions) -> Choice:
    """Returns the neurons whose scores are high on enough items."""
    highest = items.scores.max(axis=1, keepdims=True)
    votes = ((items.scores > options.threshold * highest) & (highest > 0)).mean(axis=0)
    columns = np.flatnonzero(votes > options.knowledge_share)
    if rule.count is not None:
        # many votes are equal: the mean score decides between them
        order = np.lexsort((-items.scores.mean(axis=0), -votes))[: rule.count]
        columns = np.sort(order[votes[order] > 0])
    return Choice("knowledge-neurons", votes.astype(np.float64), columns, items)


def _mean_difference(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Returns |difference of the means| in pooled standard deviations, `(neurons,)`."""
    difference = first.mean(axis=0, dtype=np.float64) - second.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(
        (first.var(axis=0, dtype=np.float64) + second.var(axis=0, dtype=np.float64)) / 2
    )
    return np.asarray(np.abs(difference) / np.maximum(spread, 1e-12), dtype=np.float64)


def _random(neurons: NeuronModel, rule: RuleOptions, seed: int) -> Choice:
    if rule.count is None:
        raise BadInput("`method` random draws a number of neurons: give `count`")
    if rule.count > len(neurons):
        raise BadInput(f"`count` {rule.count} is more than the model's {len(neurons)} neurons")
    scores = np.random.default_rng([seed, 5]).random(len(neurons))
    return Choice("random", scores, _best(scores, neurons.layers, rule))
