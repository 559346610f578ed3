"""The tables and figures of located neurons and of experiments on neurons."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from broca.results.base import tables_of
from broca.results.files import plain
from broca.results.pages.charts import Figure, Matrix
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, component, fixed

if TYPE_CHECKING:
    from broca.results.neurons import ComparedHalves, NeuronExperiment, NeuronSet, Overlaps

_CAPTIONS = {
    "fidelity": "Items, each in several paraphrases",
    "reliability": "Items whose neurons are scaled",
    "decouple": "Overlap of the neurons of two items",
    "erase": "Score lost on held-out items",
    "enhance": "Held-out items after training",
    "cross": "Change of the score of the measured data set",
}
"""Caption of the table of an experiment, by its verb."""


def neuron_grid(neuron_set: NeuronSet) -> Figure:
    """Draws the selected neurons within their layers, with the scores as colours."""
    grid = ComponentGrid(
        {neuron.name: -neuron.score for neuron in neuron_set.selected},
        f"score of {neuron_set.method}, shown as a loss",
        model=neuron_set.model,
    )
    caption = "Each stroke is a selected neuron at its position within its layer."
    return Figure("components", caption, grid)


def neuron_table(neuron_set: NeuronSet) -> Table:
    """Returns the table of selected neurons, the highest score first."""
    return Table.of(
        "neurons", "Selected neurons, highest score first", neuron_set.selected,
        component("name", "neuron"), Column("layer"), Column("index"), Column("score"),
        Column("sigmas", show=fixed(1)),
    )  # fmt: skip


def experiment_tables(experiment: NeuronExperiment[Any]) -> list[Table]:
    """Returns the tables of an experiment: its records, and each list of records in them."""
    result = experiment.result
    if experiment.verb == "overlap":
        means = [{"relation": name, **measures} for name, measures in result.summary.items()]
        caption = "Overlap of halves of data sets, mean over pairs"
        pairs = tables_from(plain(result.pairs), "Pairs of halves")
        return [*tables_from(means, caption, "summary"), *pairs]
    records = plain(result if isinstance(result, tuple) else [result])
    tables = tables_from(records, _CAPTIONS[experiment.verb])
    if experiment.verb != "cross":
        return tables
    relations = dict.fromkeys(pair.relation for pair in result)
    return [*tables, Table.of(
        "relations", "Mean over pairs",
        ([pair for pair in result if pair.relation == relation] for relation in relations),
        Column("relation", lambda pairs: pairs[0].relation), Column("pairs", len),
        Column("change", lambda pairs: fmean(pair.change.value for pair in pairs), fixed(3)),
        Column("random change", lambda pairs: fmean(pair.random_change for pair in pairs),
               fixed(3)),
        Column("log probability change",
               lambda pairs: fmean(pair.log_probability_change.value for pair in pairs), fixed(3)),
    )]  # fmt: skip


def tables_from(
    records: Sequence[dict[str, Any]], caption: str, name: str = "result"
) -> list[Table]:
    """Returns records as a table, and each list of records within them as another."""
    return [
        Table.of_lines(
            key, caption if key == name else key.rpartition(".")[2].replace("_", " "), lines
        )
        for key, lines in tables_of(name, records).items()
        if any(lines)
    ]


def overlap_figure(overlaps: Overlaps) -> Figure:
    """Draws the matrix of overlaps between tasks."""
    names, shares = overlaps.names, overlap_matrix(overlaps.names, overlaps.pairs)
    chart = Matrix(
        names,
        names,
        tuple(map(tuple, shares)),
        1.0,
        "common share of the larger set",
        texts=tuple(
            tuple("" if share is None else f"{share:.2f}" for share in row) for row in shares
        ),
        meanings=("", "in common"),
    )
    caption = "Diagonal: two halves of a data set; elsewhere: halves of two sets, mean over pairs."
    return Figure("overlap", caption, chart)


def overlap_matrix(
    names: Sequence[str], pairs: Sequence[ComparedHalves]
) -> list[list[float | None]]:
    """Returns the overlaps between tasks, `(tasks, tasks)`: means over pairs of halves, or None.

    The diagonal has the overlaps of the two halves of a task.
    """
    values: dict[frozenset[str], list[float | None]] = {}
    for pair in pairs:
        key = frozenset(half.rpartition("/")[0] for half in (pair.first, pair.second))
        values.setdefault(key, []).append(pair.overlap.of_larger)

    def mean(shares: list[float | None]) -> float | None:
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known and len(known) == len(shares) else None

    return [[mean(values.get(frozenset((a, b)), [])) for b in names] for a in names]
