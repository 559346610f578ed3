"""Prints the results of the neuron commands as tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.output import console, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.neurons import NeuronExperiment, NeuronSet

SHOWN = 20
"""Neurons that a table lists."""


def show(result: NeuronSet | NeuronExperiment, path: Path) -> None:
    """Prints one result and where it was written."""
    from broca.results.neurons import NeuronSet

    screen = console()
    if isinstance(result, NeuronSet):
        _located(screen, result)
    else:
        _PRINT[result.command.rsplit(" ", 1)[-1]](screen, result)
    for note in result.notes:
        screen.print(f"note: {note}", markup=False)
    screen.print(f"written: {path}", markup=False, soft_wrap=True)


def _located(screen: Console, result: NeuronSet) -> None:
    screen.print(
        f"{result.model.name}: {len(result.selected)} of {result.model.neurons} neurons "
        f"({result.share_of_neurons:.2%} of the neurons, {result.share_of_parameters:.3%} of the "
        f"parameters) stand out on {result.task} by {result.method}, {result.items} items.",
        markup=False,
    )
    print_table(
        screen,
        f"neurons of {result.task}",
        "neuron|score|sigmas",
        (
            (neuron.name, f"{neuron.score:.4f}", f"{neuron.sigmas:.1f}")
            for neuron in result.selected[:SHOWN]
        ),
    )
    if len(result.selected) > SHOWN:
        screen.print(f"... and {len(result.selected) - SHOWN} more")
    if result.residual is not None and result.residual == result.residual:
        screen.print(
            f"p(answer) {result.probability:.3f}; error of the steps {result.residual:.4f}"
        )


def _fidelity(screen: Console, experiment: NeuronExperiment) -> None:
    fidelity = experiment.result
    print_table(
        screen,
        f"{fidelity.questions}: {fidelity.contents} items in several wordings, "
        f"{fidelity.set_size:.1f} neurons an item",
        "pairs|of larger set|IoU|random",
        (
            (pairs.pairs, str(pairs.of_larger), str(pairs.iou), f"{pairs.random_of_larger:.3f}")
            for pairs in fidelity.agreements
        ),
    )


def _reliability(screen: Console, experiment: NeuronExperiment) -> None:
    reliability = experiment.result
    print_table(
        screen,
        f"{reliability.questions}: change of p(answer), {reliability.probability:.3f} intact; "
        f"{reliability.items} items, {reliability.set_size:.1f} neurons each",
        "factor|located|random|excess|unrelated|as claimed",
        (
            (
                f"{change.factor:g}",
                str(change.located),
                str(change.random),
                str(change.excess),
                "" if change.unrelated is None else str(change.unrelated),
                f"{change.as_claimed:.0%}",
            )
            for change in reliability.moved
        ),
    )


def _decouple(screen: Console, experiment: NeuronExperiment) -> None:
    print_table(
        screen,
        "overlap of the neurons of two items",
        "pairs share|pairs|of first|of second|of larger|IoU|random",
        (
            (
                pairs.relation,
                str(pairs.pairs),
                f"{pairs.of_first.mean:.3f}",
                f"{pairs.of_second.mean:.3f}",
                str(pairs.of_larger),
                str(pairs.iou),
                f"{pairs.random_of_larger:.3f}",
            )
            for pairs in experiment.result
        ),
    )


def _overlap(screen: Console, experiment: NeuronExperiment) -> None:
    print_table(
        screen,
        "overlap of halves of data sets, mean over pairs",
        "relation|of first|of second|of larger|IoU|random of larger|random IoU",
        (
            (relation, *(f"{value:.3f}" for value in measures.values()))
            for relation, measures in experiment.result.summary.items()
        ),
    )
    screen.print("matrix: overlap.html")


def _erase(screen: Console, experiment: NeuronExperiment) -> None:
    print_table(
        screen,
        "score lost on held-out items",
        "data set|method|neurons|intact|drop|random drop|excess|nats lost",
        (
            (
                loss.questions,
                loss.method,
                str(loss.neurons),
                f"{loss.before.mean:.3f}",
                str(loss.drop),
                f"{loss.random_drop.mean:.3f}",
                str(loss.excess),
                f"{loss.log_probability_drop.mean:.3f}",
            )
            for loss in experiment.result
        ),
    )


def _enhance(screen: Console, experiment: NeuronExperiment) -> None:
    print_table(
        screen,
        "held-out items after training",
        "arm|data set|neurons|parameters|score|change|nats gained|epoch",
        (
            (
                arm.arm,
                arm.questions,
                f"{arm.neurons} ({arm.share_of_neurons:.2%})",
                f"{arm.share_of_parameters:.3%}",
                f"{arm.score.mean:.3f}",
                str(arm.change),
                str(arm.log_probability_change),
                str(arm.best_epoch),
            )
            for arm in experiment.result
        ),
    )


def _cross(screen: Console, experiment: NeuronExperiment) -> None:
    pairs = experiment.result
    print_table(
        screen,
        f"change of the score ({experiment.settings['action']})",
        "located on|measured on|relation|neurons|change|random|nats",
        (
            (
                pair.located_on,
                pair.measured_on,
                pair.relation,
                str(pair.neurons),
                str(pair.change),
                f"{pair.random_change:+.3f}",
                f"{pair.log_probability_change.mean:+.3f}",
            )
            for pair in pairs
        ),
    )

    def mean(relation: str, value: Callable[[Any], float]) -> str:
        values = [value(pair) for pair in pairs if pair.relation == relation]
        return f"{sum(values) / len(values):+.3f}"

    print_table(
        screen,
        "mean over pairs",
        "relation|pairs|change|random|nats",
        (
            (
                relation,
                str(sum(pair.relation == relation for pair in pairs)),
                mean(relation, lambda pair: pair.change.mean),
                mean(relation, lambda pair: pair.random_change),
                mean(relation, lambda pair: pair.log_probability_change.mean),
            )
            for relation in dict.fromkeys(pair.relation for pair in pairs)
        ),
    )


_PRINT = {
    "fidelity": _fidelity,
    "reliability": _reliability,
    "decouple": _decouple,
    "overlap": _overlap,
    "erase": _erase,
    "enhance": _enhance,
    "cross": _cross,
}
