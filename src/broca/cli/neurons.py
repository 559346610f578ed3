"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import make_app
from broca.cli.keeping import SharedOutput, kept_result
from broca.cli.output import console, print_lines, print_page_table, show
from broca.options import (
    CrossOptions,
    DecoupleOptions,
    EnhanceOptions,
    EraseOptions,
    FidelityOptions,
    LocateOptions,
    OverlapOptions,
    ReliabilityOptions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.neurons import NeuronExperiment, NeuronSet


def _command(verb: str, cls: Any, sentence: str) -> Callable[..., None]:
    """Makes the command of a verb, whose results share a folder."""

    def run(options: Any, *, out: str = "broca-neurons", output: Any = SharedOutput()) -> None:
        from broca.results.neurons import NeuronExperiment, NeuronSet

        kind: Any = NeuronSet if verb == "locate" else NeuronExperiment
        result, files = kept_result(kind, f"neurons.{verb}", options, out, output)
        show(result, files[0], output.print_options, _print)

    run.__name__ = verb
    run.__annotations__ |= {"options": cls, "output": SharedOutput, "out": str}
    run.__doc__ = f"{sentence}\n\nArgs:\n    out: Folder for results; measured rows are reused."
    return run


app = make_app(
    "neurons",
    "Find the feed-forward neurons that carry what a data set has in common, and test them.",
    {
        verb: _command(verb, cls, sentence)
        for verb, cls, sentence in (
            ("locate", LocateOptions, "Locate the neurons that a data set has in common."),
            ("fidelity", FidelityOptions, "Do paraphrases of an item have the same neurons?"),
            (
                "decouple", DecoupleOptions,
                "Do items share neurons because of their capability, or because of their content?",
            ),
            (
                "overlap", OverlapOptions,
                "Do two halves of a data set, or two data sets, share neurons? Draws a figure.",
            ),
            (
                "reliability", ReliabilityOptions,
                "Do an item's neurons change p(answer), down when suppressed and up when "
                "amplified?",
            ),
            (
                "erase", EraseOptions,
                "Erase located neurons, and as many random ones, on held-out items of the task and "
                "of others.",
            ),
            (
                "enhance", EnhanceOptions,
                "Train only located neurons, only others, or random ones; measure on held-out "
                "items.",
            ),
            (
                "cross", CrossOptions,
                "Locate on one data set, erase or train there, and measure on every other.",
            ),
        )
    },
)  # fmt: skip

SHOWN = 20
"""Maximum number of neurons in a table."""

_COLUMNS = {
    "decouple": "relation|pairs|of larger|iou|random of larger",
    "erase": "questions|method|neurons|drop|random drop|excess",
    "enhance": "arm|questions|neurons|share of parameters|score|change",
    "cross": "located on|measured on|relation|neurons|change|random change",
}
"""The columns of the first table that a terminal has room for, by the verb; all by default."""


def _print(result: NeuronSet | NeuronExperiment[Any], path: Path) -> None:
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
