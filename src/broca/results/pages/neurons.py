"""The tables and the figure of located and of erased neurons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broca.results.pages.charts import Figure
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, component, fixed

if TYPE_CHECKING:
    from broca.results.neurons import Erasure, NeuronSet


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


def erasure_table(erasure: Erasure) -> Table:
    """Returns the table of drops, a row for each task and method."""
    columns = (
        "method", "questions", "neurons", "before", "after", "drop", "random drop", "random drops",
        "excess", "log probability drop",
    )  # fmt: skip
    return Table.of("result", "Score lost on held-out items", erasure.result, *map(Column, columns))
