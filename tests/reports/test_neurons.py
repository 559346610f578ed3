"""Pages of located neurons and of other experiments on neurons."""

from dataclasses import replace

from results.test_base import make_experiment, make_neurons

from broca.reports import render
from broca.reports.neurons import record_tables


def test_located_neurons_have_a_page():
    """The picture comes before the list, and every neuron is in it."""
    neuron_set = make_neurons()
    html = render(neuron_set)
    assert html.index("<h1>") < html.index("<svg") < html.index("<table>")
    for neuron in neuron_set.selected:
        assert f'data-component="{neuron.name}"' in html


def test_a_chart_counts_neurons_only_where_a_reader_cannot():
    """A chart by layer is drawn only if there are too many neurons to count in the picture."""
    neuron_set = make_neurons()
    assert 'data-figure="layers"' not in render(neuron_set)
    large_set = replace(neuron_set, selected=neuron_set.selected * 41)
    assert 'data-figure="layers"' in render(large_set)


def test_any_experiment_has_a_page_of_tables():
    """An experiment with any result has a page with a table."""
    html = render(make_experiment())
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
