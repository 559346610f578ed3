"""Prints the results of the neuron commands as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.output import console, print_lines, print_page_table

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.neurons import NeuronExperiment, NeuronSet

SHOWN = 20
"""Maximum number of neurons in a table."""

_COLUMNS = {
    "decouple": "relation|pairs|of larger|iou|random of larger",
    "erase": "questions|method|neurons|drop|random drop|excess",
    "enhance": "arm|questions|neurons|share of parameters|score|change",
    "cross": "located on|measured on|relation|neurons|change|random change",
}
"""The columns of the first table that a terminal has room for, by the verb; all by default."""


def print_tables(result: NeuronSet | NeuronExperiment[Any], path: Path) -> None:
    """Prints a result and the path of its file."""
    from broca.results.neurons import NeuronSet

    screen = console()
    if isinstance(result, NeuronSet):
        _located(screen, result)
    else:
        _experiment(screen, result)
    print_lines(screen, (f"note: {note}" for note in result.notes), f"written: {path}")


def _located(screen: Console, result: NeuronSet) -> None:
    from broca.reports.neurons import neuron_table

    screen.print(
        f"{result.model.name}: {len(result.selected)} of {result.model.neurons} neurons "
        f"({result.share_of_neurons:.2%} of the neurons, {result.share_of_parameters:.3%} of the "
        f"parameters) stand out on {result.task} by {result.method}, {result.items} items.",
        markup=False,
    )
    print_page_table(screen, neuron_table(result), "neuron|score|sigmas", most=SHOWN)
    if len(result.selected) > SHOWN:
        screen.print(f"... and {len(result.selected) - SHOWN} more")
    if result.residual is not None and result.residual == result.residual:
        screen.print(
            f"p(answer) {result.probability:.3f}; error of the steps {result.residual:.4f}"
        )


def _experiment(screen: Console, result: NeuronExperiment[Any]) -> None:
    from broca.reports.neurons import experiment_tables
    from broca.reports.overlap import is_overlap, summary_tables

    if is_overlap(result):
        for table in summary_tables(result.result):
            print_page_table(screen, table)
        screen.print("matrix: overlap.html")
        return
    columns = _COLUMNS.get(result.verb, "")
    for number, table in enumerate(experiment_tables(result)):
        print_page_table(screen, table, "" if number else columns)
