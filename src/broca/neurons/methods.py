"""The ways to choose neurons: commonality neurons, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, nearest
from broca.neurons.locating import ItemScores, NeuronModel, Tell, item_scores
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns, Rule, commonality_set, data_set_scores, standardized

Method = Literal["cnl", "knowledge-neurons", "activation", "gradient", "random", "sensing"]
"""Commonality neurons; knowledge neurons; activation mean difference; gradient x activation;
chance; compressed sensing over groups of neurons (`broca.neurons.sensing`)."""

KNOWLEDGE_THRESHOLD = 0.2
"""Knowledge neurons: the share of an item's highest score that a neuron must exceed."""

KNOWLEDGE_SHARE = 0.4
"""Knowledge neurons: the share of items whose sets must hold a neuron."""


@dataclass(frozen=True)
class Choice:
    """Neurons that a method chose.

    Attributes:
        method: The method.
        scores: What it chose by, `(neurons,)`; higher is more.
        columns: The chosen neurons, sorted.
        items: The items' scores that it rests on; None where it needs none.
    """

    method: str
    scores: NDArray[np.float64]
    columns: Columns
    items: ItemScores | None


def require_method(method: str) -> None:
    """Refuses an unknown method by name.

    Raises:
        BadInput: No such method.
    """
    if method not in get_args(Method):
        known = get_args(Method)
        raise BadInput(
            f"method '{method}' is unknown{nearest(method, known)}; use {', '.join(known)}"
        )


def choose(
    neurons: NeuronModel,
    questions: QuestionSet,
    *,
    method: str = "cnl",
    rule: Rule | None = None,
    steps: int = 19,
    contrast: Sequence[QuestionSet] = (),
    threshold: float = KNOWLEDGE_THRESHOLD,
    share: float = KNOWLEDGE_SHARE,
    seed: int = 0,
    book: Path | None = None,
    tell: Tell | None = None,
) -> Choice:
    """Chooses the neurons of a data set by scores (every method but `sensing`, which searches).

    Args:
        neurons: The model.
        questions: The data set.
        method: A `Method`.
        rule: Which scores stand out; where it has a count, every method takes its so many best.
        steps: Steps of the integrated gradients.
        contrast: Other data sets, for `activation`.
        threshold: Of knowledge neurons.
        share: Of knowledge neurons.
        seed: Seed of `random`.
        book: File of item scores, for resuming.
        tell: Receives how far it is.

    Raises:
        BadInput: Unknown method, or one that needs what was not given.
    """
    require_method(method)
    rule = rule or Rule()
    if method == "random":
        return _random(neurons, rule, seed)
    if method == "sensing":
        raise BadInput("method 'sensing' searches by ablation: use broca.neurons.sense")
    if method == "activation" and not contrast:
        raise BadInput("method 'activation' compares with other data sets: name some in --others")
    score: Literal["integrated", "gradient"] = (
        "gradient" if method in ("gradient", "activation") else "integrated"
    )
    found = item_scores(neurons, questions, steps=steps, score=score, book=book, tell=tell)
    if method == "knowledge-neurons":
        return _knowledge(found, rule, threshold=threshold, share=share)
    if method == "activation":
        others = [
            item_scores(neurons, one, score="gradient", book=book, tell=tell) for one in contrast
        ]
        scores = _mean_difference(
            found.activations, np.concatenate([one.activations for one in others])
        )
        columns = _best(scores, neurons.layers, rule)
        return Choice(method, scores, columns, found)
    scores = data_set_scores(found.scores, neurons.layers, rule)
    return Choice(method, scores, commonality_set(found.scores, neurons.layers, rule), found)


def _best(scores: NDArray[np.float64], layers: NDArray[np.intp], rule: Rule) -> Columns:
    """The neurons that stand out in a data set's scores."""
    if rule.count is not None:
        return np.sort(np.argsort(-scores, kind="stable")[: rule.count])
    return np.flatnonzero(standardized(scores, layers, rule.scope) > rule.sigma)


def _knowledge(found: ItemScores, rule: Rule, *, threshold: float, share: float) -> Choice:
    """Neurons near the top of enough items."""
    highest = found.scores.max(axis=1, keepdims=True)
    votes = ((found.scores > threshold * highest) & (highest > 0)).mean(axis=0)
    columns = np.flatnonzero(votes > share)
    if rule.count is not None:
        # ties between votes are many: the mean score decides
        order = np.lexsort((-found.scores.mean(axis=0), -votes))[: rule.count]
        columns = np.sort(order[votes[order] > 0])
    return Choice("knowledge-neurons", votes.astype(np.float64), columns, found)


def _mean_difference(own: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    """|Mean activation here - elsewhere| in pooled standard deviations of items, `(neurons,)`."""
    difference = own.mean(axis=0, dtype=np.float64) - others.mean(axis=0, dtype=np.float64)
    spread = np.sqrt((own.var(axis=0, dtype=np.float64) + others.var(axis=0, dtype=np.float64)) / 2)
    return np.asarray(np.abs(difference) / np.maximum(spread, 1e-12), dtype=np.float64)


def _random(neurons: NeuronModel, rule: Rule, seed: int) -> Choice:
    if rule.count is None:
        raise BadInput("method 'random' draws a number of neurons: give --count")
    if rule.count > len(neurons):
        raise BadInput(f"--count {rule.count} is more than the model's {len(neurons)} neurons")
    scores = np.random.default_rng([seed, 5]).random(len(neurons))
    return Choice("random", scores, _best(scores, neurons.layers, rule), None)
