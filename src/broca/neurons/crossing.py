"""Located on A, erased or trained on A, measured on B: of the same capability and of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from broca.errors import BadInput
from broca.neurons.effects import Measurer
from broca.neurons.enhancing import enhance
from broca.neurons.erasing import erase
from broca.neurons.locating import NeuronModel, Tell
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns
from broca.neurons.sets import Matching
from broca.neurons.statistics import Estimate
from broca.neurons.tuning import TuningOptions

Action = Literal["erase", "tune"]


@dataclass(frozen=True)
class Parts:
    """A data set cut once: what is located on, what decides, what is measured.

    Attributes:
        locate: Items to locate on, and to train on.
        confirm: Items that decide when training stops.
        report: Items for every number that is shown.
    """

    locate: QuestionSet
    confirm: QuestionSet
    report: QuestionSet


@dataclass(frozen=True)
class Crossed:
    """What was done with the neurons of A, measured on B.

    Attributes:
        action: `erase` or `tune`.
        located_on: A.
        measured_on: B.
        relation: `same data`, `same capability` or `other capability`.
        neurons: Located neurons.
        change: Change of B's score.
        random_change: The same with as many random neurons, mean over the draws.
        log_probability_change: Change in nats of B's gold answers.
    """

    action: str
    located_on: str
    measured_on: str
    relation: str
    neurons: int
    change: Estimate
    random_change: float
    log_probability_change: Estimate


def cross(
    neurons: NeuronModel,
    sets: Sequence[Columns],
    data: Sequence[Parts],
    *,
    action: Action,
    measurer: Measurer,
    options: TuningOptions | None = None,
    draws: int = 3,
    matching: Matching = "size",
    seed: int = 0,
    tell: Tell | None = None,
) -> tuple[Crossed, ...]:
    """Acts with every data set's neurons and measures on every data set.

    Args:
        neurons: The model; its weights are as before afterwards.
        sets: Located neurons of every data set, in the order of `data`; empty ones are left out.
        data: The data sets.
        action: `erase` the located neurons, or `tune` them on the data they were located on.
        measurer: Asks the questions.
        options: How to train.
        draws: Random sets to compare each with.
        matching: Whether random sets match the size, or the number in every layer.
        seed: Seed of the draws and the intervals.
        tell: Receives how far it is.

    Raises:
        BadInput: Unknown action.
    """
    if action not in get_args(Action):
        raise BadInput(f"--action '{action}' is unknown: use erase or tune")
    reports = [one.report for one in data]
    results = []
    for own, columns in zip(data, sets, strict=True):
        if not len(columns):
            continue
        if action == "erase":
            done = erase(
                neurons, {"located": columns}, reports, measurer=measurer, draws=draws,
                matching=matching, seed=seed,
            )  # fmt: skip
            found = [
                (_minus(one.drop), 0.0 - one.random_drop.mean, _minus(one.log_probability_drop))
                for one in done
            ]
        else:
            arms = enhance(
                neurons, columns, own.locate, own.confirm, reports, measurer=measurer,
                options=options, draws=draws, matching=matching, arms=("located", "random"),
                seed=seed, tell=tell,
            )  # fmt: skip
            found = []
            for one in reports:
                here = [arm for arm in arms if arm.questions == one.name]
                located = next(arm for arm in here if arm.arm == "located")
                random = [arm.change.mean for arm in here if arm.arm.startswith("random")]
                found.append(
                    (located.change, sum(random) / len(random), located.log_probability_change)
                )
        for other, (change, random_change, gained) in zip(data, found, strict=True):
            results.append(
                Crossed(
                    action=action,
                    located_on=own.locate.name,
                    measured_on=other.report.name,
                    relation=relation_of(own.locate, other.report),
                    neurons=len(columns),
                    change=change,
                    random_change=random_change,
                    log_probability_change=gained,
                )
            )
    return tuple(results)


def relation_of(first: QuestionSet, second: QuestionSet) -> str:
    """How two data sets are related."""
    if first.name == second.name:
        return "same data"
    same = first.capability == second.capability
    return "same capability" if same else "other capability"


def _minus(one: Estimate) -> Estimate:
    return Estimate(0.0 - one.mean, 0.0 - one.high, 0.0 - one.low, one.n)  # no negative zeros
