"""Pages of located neurons and of other experiments on neurons."""

from dataclasses import replace

import numpy as np
import pytest
from results.samples import RESULTS, make_experiment, make_neurons

from broca.results.base import Interval
from broca.results.neurons import EXPERIMENTS
from broca.results.pages.neurons import experiment_tables, record_tables, relation_table


def test_located_neurons_have_a_page():
    """The picture comes before the list, and every neuron is in it."""
    neuron_set = make_neurons()
    html = neuron_set.page()
    assert html.index("<h1>") < html.index("<svg") < html.index("<table>")
    for neuron in neuron_set.selected:
        assert f'data-component="{neuron.name}"' in html


def test_a_chart_counts_neurons_only_where_a_reader_cannot():
    """A chart by layer is drawn only if there are too many neurons to count in the picture."""
    neuron_set = make_neurons()
    assert 'data-figure="layers"' not in neuron_set.page()
    large_set = replace(neuron_set, selected=neuron_set.selected * 41)
    assert 'data-figure="layers"' in large_set.page()


def test_any_experiment_has_a_page_of_tables():
    """An experiment with any result has a page with a table."""
    html = make_experiment().page()
    assert "Results" in html
    assert "<table>" in html


def test_records_within_records_become_tables():
    """Values of records and inner records share a table; a list of records has its own table."""
    first, second = record_tables([
        {"a_b": 1, "inner": {"c": 0.5}, "lines": [{"x": 1}, {"x": 2}]},
    ])  # fmt: skip
    assert [column.name for column in first.columns] == ["a b", "inner: c"]
    assert first.rows == ((1, 0.5),)
    assert second.caption == "lines"
    assert second.rows == ((1,), (2,))


def test_cells_are_intervals_numbers_and_words():
    """An interval is one cell with its ends; numbers are aligned right and words left."""
    record = {"drop": Interval(0.5, 0.25, 1), "share": 0.00015, "name": "cnl", "losses": (1.5, 2)}
    (table,) = record_tables([record, {"name": "kn"}], "Drops")
    cells = [column.show(value) for column, value in zip(table.columns, table.rows[0], strict=True)]
    assert cells == ["0.500 [0.250, 1.000]", "0.00015", "cnl", "1.5, 2"]
    assert [column.words for column in table.columns] == [False, False, True, False]
    assert table.rows[1] == (None, None, "kn", None)
    assert table.caption == "Drops"


@pytest.mark.parametrize("verb", [verb for verb in EXPERIMENTS if verb != "overlap"])
def test_every_experiment_has_its_tables(verb):
    """The first table has a line for each record, those of lists within it follow."""
    experiment = make_experiment(verb)
    first, *others = experiment_tables(experiment)
    assert len(first.rows) == len(experiment.records())
    assert first.caption != "Results"
    assert bool(others) == (verb in ("fidelity", "reliability", "cross"))


def test_relations_are_averaged_over_their_pairs():
    """Means of changes are those of NumPy, for each relation."""
    (pair,) = RESULTS["cross"]
    other = replace(pair, change=Interval(0.5, 0.4, 0.6), random_change=0.25)
    apart = replace(pair, relation="same data")
    rows = relation_table([pair, other, apart]).rows
    assert [row[:2] for row in rows] == [(pair.relation, 2), ("same data", 1)]
    assert rows[0][2] == pytest.approx(np.mean([pair.change.value, 0.5]))
    assert rows[0][3] == pytest.approx(np.mean([pair.random_change, 0.25]))
