"""Located neurons, and the other experiments on neurons, as HTML pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from statistics import fmean
from typing import Any

from broca.reports import result_figures
from broca.reports.charts import Bars
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.tables import SHOWN, Column, Table, count, fixed
from broca.results.base import Interval
from broca.results.neurons import Crossed, NeuronExperiment, NeuronSet

_CAPTIONS = {
    "fidelity": "Items, each in several paraphrases",
    "reliability": "Items whose neurons are scaled",
    "decouple": "Overlap of the neurons of two items",
    "erase": "Score lost on held-out items",
    "enhance": "Held-out items after training",
    "cross": "Change of the score of the measured data set",
}
"""Caption of the table of an experiment, by its verb."""


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
    return filled("experiment", experiment=experiment, tables=experiment_tables(experiment))


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


def experiment_tables(experiment: NeuronExperiment[Any]) -> list[Table]:
    """Returns the tables of the results of an experiment."""
    result = experiment.result
    records = result if isinstance(result, tuple) else (result,)
    tables = record_tables(records, _CAPTIONS.get(experiment.verb, "Results"))
    return [*tables, relation_table(result)] if experiment.verb == "cross" else tables


def relation_table(crossed: Sequence[Crossed]) -> Table:
    """Returns the table of mean changes over the pairs of each relation."""
    relations: dict[str, list[Crossed]] = {}
    for pair in crossed:
        relations.setdefault(pair.relation, []).append(pair)
    return Table(
        "relations",
        "Mean over pairs",
        (
            Column("relation", words=True), Column("pairs", count), Column("change", fixed(3)),
            Column("random change", fixed(3)), Column("log probability change", fixed(3)),
        ),
        tuple(
            (
                relation, len(pairs), fmean(pair.change.value for pair in pairs),
                fmean(pair.random_change for pair in pairs),
                fmean(pair.log_probability_change.value for pair in pairs),
            )
            for relation, pairs in relations.items()
        ),
    )  # fmt: skip


def record_tables(records: Sequence[Any], caption: str = "Results") -> list[Table]:
    """Returns records as tables: one of their values, and one for each list of records in them.

    Args:
        records: Data classes or mappings; fields of a record within a record are columns too.
        caption: Caption of the table of values; the others have the name of their field.
    """
    flat = [_flat(record) for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    rows = tuple(tuple(record.get(name) for name in names) for record in flat)
    columns = tuple(
        Column(name, _shown, words=any(isinstance(row[number], str) for row in rows))
        for number, name in enumerate(names)
    )
    tables = [Table("result", caption, columns, rows)] if names else []
    for record in records:
        for name, value in _parts(record):
            for table in (
                record_tables(value, name.replace("_", " ")) if _are_records(value) else ()
            ):
                tables.append(replace(table, name=f"{name}-{len(tables)}"))
    return tables


def _parts(record: Any) -> list[tuple[str, Any]]:
    if isinstance(record, Mapping):
        return list(record.items())
    return [(part.name, getattr(record, part.name)) for part in fields(record)]


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, Interval))


def _are_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_record, value))


def _flat(record: Any, before: str = "") -> dict[str, Any]:
    """Returns values by name, including those of records within it but not of lists of records."""
    flat: dict[str, Any] = {}
    for key, value in _parts(record):
        name = f"{before}{key.replace('_', ' ')}"
        if _is_record(value):
            flat |= _flat(value, f"{name}: ")
        elif not _are_records(value):
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    if isinstance(value, Interval):
        return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else str(value)
