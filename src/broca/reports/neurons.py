"""Located neurons, and the other experiments on neurons, as HTML pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broca.reports import result_figures
from broca.reports.charts import Bars
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.tables import SHOWN, Column, Table, fixed
from broca.results.neurons import NeuronExperiment, NeuronSet


def render_neurons_page(neuron_set: NeuronSet) -> str:
    """Renders located neurons as a self-contained HTML page."""
    return filled(
        "neurons",
        neuron_set=neuron_set,
        grid_figure=result_figures.located(neuron_set) if neuron_set.selected else None,
        # the picture and the table show fewer
        by_layer=neurons_by_layer(neuron_set) if len(neuron_set.selected) > SHOWN else None,
        neurons=neuron_table(neuron_set),
    )


def render_experiment_page(experiment: NeuronExperiment[Any]) -> str:
    """Renders any experiment on neurons as tables of its results."""
    return filled("experiment", experiment=experiment, tables=record_tables(experiment.records()))


def neurons_by_layer(neuron_set: NeuronSet) -> Figure:
    """Draws the number of selected neurons in every layer."""
    rows = tuple(f"layer {name}" for name in neuron_set.by_layer)
    chart = Bars(rows, tuple(float(n) for n in neuron_set.by_layer.values()), "selected neurons")
    return Figure("layers", "Number of selected neurons in every layer.", chart)


def neuron_table(neuron_set: NeuronSet) -> Table:
    """Returns the table of selected neurons, the highest score first."""
    return Table(
        "neurons",
        "Selected neurons, highest score first",
        (
            Column("neuron", components=True), Column("layer"), Column("index"),
            Column("score", "{:.4g}".format), Column("sigmas", fixed(1)),
        ),
        tuple(
            (neuron.name, neuron.layer, neuron.index, neuron.score, neuron.sigmas)
            for neuron in neuron_set.selected
        ),
    )  # fmt: skip


def record_tables(records: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Returns records as tables: one of plain values, and one for each nested list of records."""
    flat = [_flat(record) for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    nested = [
        (name, value)
        for record in records
        for name, value in record.items()
        if isinstance(value, list) and value and all(isinstance(line, dict) for line in value)
    ]
    tables = [
        Table(
            "result", "Results", tuple(Column(name, _shown, words=True) for name in names),
            tuple(tuple(record.get(name) for name in names) for record in flat),
        )
    ] if names else []  # fmt: skip
    for name, value in nested:
        for table in record_tables(value):
            caption = name.replace("_", " ")
            tables.append(Table(f"{name}-{len(tables)}", caption, table.columns, table.rows))
    return tables


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Returns values by name, including nested dictionaries but not lists of records."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{before}{str(key).replace('_', ' ')}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{name}: ")
        elif not (isinstance(value, list) and value and isinstance(value[0], dict)):
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)
