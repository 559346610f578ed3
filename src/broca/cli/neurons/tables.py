"""Prints the results of the neuron commands as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.output import console, interval_text, print_lines, print_page_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.neurons import NeuronExperiment, NeuronSet

SHOWN = 20
"""Maximum number of neurons in a table."""

_SHARES = {"as_claimed", "share_of_parameters"}
"""Fields that are shown in percent."""

_POINTS = {"before", "random_drop", "score", "log_probability_drop", "of_first", "of_second"}
"""Intervals of which only the estimate is shown."""

_TABLES = {
    "fidelity": (
        "{questions}: {contents} items in several paraphrases, {set_size:.1f} neurons an item",
        {
            "pairs": "pairs", "of larger set": "of_larger", "IoU": "iou",
            "random": "random_of_larger",
        },
    ),
    "reliability": (
        "{questions}: change of p(answer), {probability:.3f} intact; {items} items, "
        "{set_size:.1f} neurons each",
        {
            "factor": "factor", "located": "located", "random": "random", "excess": "excess",
            "unrelated": "unrelated", "as claimed": "as_claimed",
        },
    ),
    "decouple": (
        "overlap of the neurons of two items",
        {
            "pairs share": "relation", "pairs": "pairs", "of first": "of_first",
            "of second": "of_second", "of larger": "of_larger", "IoU": "iou",
            "random": "random_of_larger",
        },
    ),
    "erase": (
        "score lost on held-out items",
        {
            "data set": "questions", "method": "method", "neurons": "neurons", "intact": "before",
            "drop": "drop", "random drop": "random_drop", "excess": "excess",
            "nats lost": "log_probability_drop",
        },
    ),
    "enhance": (
        "held-out items after training",
        {
            "arm": "arm", "data set": "questions", "neurons": "neurons",
            "parameters": "share_of_parameters", "score": "score", "change": "change",
            "nats gained": "log_probability_change", "epoch": "best_epoch",
        },
    ),
    "cross": (
        "change of the score",
        {
            "located on": "located_on", "measured on": "measured_on", "relation": "relation",
            "neurons": "neurons", "change": "change", "random": "random_change",
            "nats": "log_probability_change",
        },
    ),
}  # fmt: skip
"""By command, the title of its table, and by column the field of a line of the result."""


def print_tables(result: NeuronSet | NeuronExperiment[Any], path: Path) -> None:
    """Prints a result and the path of its file."""
    from broca.results.neurons import NeuronSet

    screen = console()
    if isinstance(result, NeuronSet):
        _located(screen, result)
    else:
        _experiment(screen, result.verb, result.result)
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


def _experiment(screen: Console, verb: str, result: Any) -> None:
    if verb == "overlap":
        print_table(
            screen,
            "overlap of halves of data sets, mean over pairs",
            "relation|of first|of second|of larger|IoU|random of larger|random IoU",
            (
                (relation, *map(_cell, measures.values()))
                for relation, measures in result.summary.items()
            ),
        )
        screen.print("matrix: overlap.html")
        return
    title, columns = _TABLES[verb]
    lines = {"fidelity": "agreements", "reliability": "moved"}.get(verb)
    if lines is not None:
        title, result = title.format(**vars(result)), getattr(result, lines)
    cells = [[_field(line, name) for name in columns.values()] for line in result]
    print_table(screen, title, tuple(columns), cells)
    if verb == "cross":
        _means(screen, result)


def _means(screen: Console, crossed: Sequence[Any]) -> None:
    """The mean over pairs of each relation."""
    lines = []
    for relation in dict.fromkeys(pair.relation for pair in crossed):
        pairs = [pair for pair in crossed if pair.relation == relation]
        means = (
            sum(values) / len(pairs)
            for values in (
                [pair.change.value for pair in pairs],
                [pair.random_change for pair in pairs],
                [pair.log_probability_change.value for pair in pairs],
            )
        )
        lines.append((relation, str(len(pairs)), *map(_cell, means)))
    print_table(screen, "mean over pairs", "relation|pairs|change|random|nats", lines)


def _field(line: Any, name: str) -> str:
    """Returns a field of a line of the result as a table shows it."""
    value = getattr(line, name)
    if name in _SHARES:
        return f"{value:.3%}"
    return _cell(value.value if name in _POINTS else value)


def _cell(value: Any) -> str:
    """Returns a number, an interval or a name as a table shows it."""
    from broca.results.base import Interval

    if value is None:
        return ""
    if isinstance(value, Interval):
        return interval_text(value, ".3f")
    return f"{value:.3f}" if isinstance(value, float) else str(value)
