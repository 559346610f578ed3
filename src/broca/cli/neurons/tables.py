"""Prints the results of the neuron commands as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.neurons import NeuronExperiment, NeuronSet

SHOWN = 20
"""Neurons that a table lists."""


def show(result: NeuronSet | NeuronExperiment, path: Path) -> None:
    """Prints one result and where it was written."""
    from rich.console import Console

    from broca.results.neurons import NeuronSet

    console = Console(highlight=False)
    if isinstance(result, NeuronSet):
        _located(console, result)
    else:
        _PRINT[result.command.rsplit(" ", 1)[-1]](console, result)
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"written: {path}", markup=False, soft_wrap=True)


def _table(console: Console, title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)


def _located(console: Console, result: NeuronSet) -> None:
    console.print(
        f"{result.model.name}: {len(result.selected)} of {result.model.neurons} neurons "
        f"({result.share_of_neurons:.2%} of the neurons, {result.share_of_parameters:.3%} of the "
        f"parameters) stand out on {result.task} by {result.method}, {result.items} items.",
        markup=False,
    )
    rows = [[one.name, f"{one.score:.4f}", f"{one.sigmas:.1f}"] for one in result.selected[:SHOWN]]
    if rows:
        _table(console, f"neurons of {result.task}", ["neuron", "score", "sigmas"], rows)
    if len(result.selected) > SHOWN:
        console.print(f"... and {len(result.selected) - SHOWN} more")
    if result.residual is not None and result.residual == result.residual:
        console.print(
            f"p(answer) {result.probability:.3f}; error of the steps {result.residual:.4f}"
        )


def _fidelity(console: Console, done: NeuronExperiment) -> None:
    found = done.result
    _table(
        console,
        f"{found.questions}: {found.contents} items in several wordings, "
        f"{found.set_size:.1f} neurons an item",
        ["pairs", "of larger set", "IoU", "random"],
        [
            [one.pairs, str(one.of_larger), str(one.iou), f"{one.random_of_larger:.3f}"]
            for one in found.agreements
        ],
    )


def _reliability(console: Console, done: NeuronExperiment) -> None:
    found = done.result
    _table(
        console,
        f"{found.questions}: change of p(answer), {found.probability:.3f} intact; {found.items} "
        f"items, {found.set_size:.1f} neurons each",
        ["factor", "located", "random", "excess", "unrelated", "as claimed"],
        [
            [
                f"{one.factor:g}",
                str(one.located),
                str(one.random),
                str(one.excess),
                "" if one.unrelated is None else str(one.unrelated),
                f"{one.as_claimed:.0%}",
            ]
            for one in found.moved
        ],
    )


def _decouple(console: Console, done: NeuronExperiment) -> None:
    _table(
        console,
        "overlap of the neurons of two items",
        ["pairs share", "pairs", "of first", "of second", "of larger", "IoU", "random"],
        [
            [
                one.relation,
                str(one.pairs),
                f"{one.of_first.mean:.3f}",
                f"{one.of_second.mean:.3f}",
                str(one.of_larger),
                str(one.iou),
                f"{one.random_of_larger:.3f}",
            ]
            for one in done.result
        ],
    )


def _overlap(console: Console, done: NeuronExperiment) -> None:
    _table(
        console,
        "overlap of halves of data sets, mean over pairs",
        ["relation", "of first", "of second", "of larger", "IoU", "random of larger", "random IoU"],
        [
            [relation, *(f"{value:.3f}" for value in measures.values())]
            for relation, measures in done.result.summary.items()
        ],
    )
    console.print("matrix: overlap.html")


def _erase(console: Console, done: NeuronExperiment) -> None:
    _table(
        console,
        "score lost on held-out items",
        ["data set", "method", "neurons", "intact", "drop", "random drop", "excess", "nats lost"],
        [
            [
                one.questions,
                one.method,
                str(one.neurons),
                f"{one.before.mean:.3f}",
                str(one.drop),
                f"{one.random_drop.mean:.3f}",
                str(one.excess),
                f"{one.log_probability_drop.mean:.3f}",
            ]
            for one in done.result
        ],
    )


def _enhance(console: Console, done: NeuronExperiment) -> None:
    _table(
        console,
        "held-out items after training",
        ["arm", "data set", "neurons", "parameters", "score", "change", "nats gained", "epoch"],
        [
            [
                one.arm,
                one.questions,
                f"{one.neurons} ({one.share_of_neurons:.2%})",
                f"{one.share_of_parameters:.3%}",
                f"{one.score.mean:.3f}",
                str(one.change),
                str(one.log_probability_change),
                str(one.best_epoch),
            ]
            for one in done.result
        ],
    )


def _cross(console: Console, done: NeuronExperiment) -> None:
    _table(
        console,
        f"change of the score ({done.settings['action']})",
        ["located on", "measured on", "relation", "neurons", "change", "random", "nats"],
        [
            [
                one.located_on,
                one.measured_on,
                one.relation,
                str(one.neurons),
                str(one.change),
                f"{one.random_change:+.3f}",
                f"{one.log_probability_change.mean:+.3f}",
            ]
            for one in done.result
        ],
    )
    _summary(console, done.result)


def _summary(console: Console, crossed: Any) -> None:
    relations = dict.fromkeys(one.relation for one in crossed)
    rows = []
    for relation in relations:
        own = [one for one in crossed if one.relation == relation]
        rows.append(
            [
                relation,
                str(len(own)),
                f"{sum(one.change.mean for one in own) / len(own):+.3f}",
                f"{sum(one.random_change for one in own) / len(own):+.3f}",
                f"{sum(one.log_probability_change.mean for one in own) / len(own):+.3f}",
            ]
        )
    _table(console, "mean over pairs", ["relation", "pairs", "change", "random", "nats"], rows)


_PRINT = {
    "fidelity": _fidelity,
    "reliability": _reliability,
    "decouple": _decouple,
    "overlap": _overlap,
    "erase": _erase,
    "enhance": _enhance,
    "cross": _cross,
}
