"""The overlap of tasks' neurons as a page with one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from broca.reports.charts import Matrix
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.neurons import record_tables
from broca.reports.tables import Table
from broca.results.neurons import ComparedHalves, NeuronExperiment, Overlaps


def is_overlap(result: Any) -> TypeGuard[NeuronExperiment[Overlaps]]:
    """Whether a result comes from `broca neurons overlap`."""
    return isinstance(result, NeuronExperiment) and result.verb == "overlap"


def matrix(names: Sequence[str], pairs: Sequence[ComparedHalves]) -> list[list[float | None]]:
    """Returns the overlaps between tasks, `(tasks, tasks)`: means over pairs of halves, or None.

    The diagonal has the overlaps of the two halves of a task.

    Args:
        names: The tasks.
        pairs: Pairs of halves.
    """
    position = {name: number for number, name in enumerate(names)}
    values: list[list[list[float | None]]] = [[[] for _ in names] for _ in names]
    for pair in pairs:
        i, j = (position[half.rpartition("/")[0]] for half in (pair.first, pair.second))
        for a, b in {(i, j), (j, i)}:
            values[a][b].append(pair.overlap.of_larger)
    return [[_mean(cell) for cell in row] for row in values]


def _mean(values: Sequence[float | None]) -> float | None:
    """Returns the mean; None if a value is unknown or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def overlap_figure(result: NeuronExperiment[Overlaps]) -> Figure:
    """Draws the matrix of overlaps between tasks."""
    names = result.result.names
    shares = matrix(names, result.result.pairs)
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
        text=f"Overlap of the neurons of {len(names)} tasks",
    )
    caption = "Diagonal: two halves of a data set; elsewhere: halves of two sets, mean over pairs."
    return Figure("overlap", caption, chart)


def summary_tables(overlaps: Overlaps) -> list[Table]:
    """Returns the table of the mean overlaps over the pairs of each relation, if there are any."""
    records = [
        {"relation": relation, **measures} for relation, measures in overlaps.summary.items()
    ]
    return record_tables(records, "Overlap of halves of data sets, mean over pairs")


def overlap_page(result: NeuronExperiment[Overlaps]) -> str:
    """A self-contained HTML page with the matrix of overlaps between tasks."""
    return filled(
        "experiment",
        experiment=result,
        text="Share of the larger set of located neurons that two sets have in common.",
        overlap=overlap_figure(result),
        tables=[
            *summary_tables(result.result),
            *record_tables(result.result.pairs, "Pairs of halves"),
        ],
    )
