"""Figures of results contain the results' numbers."""

from dataclasses import replace

import pytest
from results.samples import make_stress
from results.samples import make_result
from simulated import toy_verification

from broca.results.neurons import LocatedNeuron
from broca.results.pages import result_figures


@pytest.fixture(scope="module")
def verification():
    """A verification of a simulated model."""
    return toy_verification()


def test_the_picture_has_every_effect():
    """The grid contains every effect of the ranking and the selection."""
    result = make_result()
    grid = result_figures.components(result).chart
    assert grid.effects == {line.name: line.effect for line in result.ranking}
    assert grid.selected == result.selected


def test_scores_stand_beside_one_another(verification):
    """Scores are paired by task; an empty set has no ablated scores."""
    chart = result_figures.before_after(verification).chart
    intact, ablated = chart.series
    for series, scores in ((intact, verification.baseline), (ablated, verification.after)):
        assert {chart.rows[row]: point.value for row, point in series.points} == scores
    assert len(result_figures.before_after(replace(verification, heads=())).chart.series) == 1


def test_members_are_coloured_by_what_they_cost(verification):
    """A member's effect is its loss when ablated alone, as a negative number."""
    grid = result_figures.members(verification).chart
    for member in verification.members:
        assert grid.effects[member.head] == -member.alone.value


def test_random_sets_are_points_and_the_real_set_is_another(verification):
    """Random sets and the real set share an axis in percentage points."""
    chart = result_figures.controls(verification.controls).chart
    drawn, real = chart.series
    kinds = verification.controls
    assert len(drawn.points) == sum(len(kind.sets) for kind in kinds)
    assert [point.value for _, point in real.points] == [100 * kind.drop.value for kind in kinds]


def test_the_curve_has_the_drops_of_every_k(verification):
    """The curve has the drop with its interval for every k and a mark where it becomes flat."""
    swept = verification.curve
    chart = result_figures.curve(swept).chart
    task = chart.lines[0]
    assert list(task.x) == [point.k for point in swept.points]
    assert (task.points[0].value, task.points[0].low) == (0, None)  # nothing is ablated yet
    assert [point.low for point in task.points[1:]] == [100 * p.drop.low for p in swept.points[1:]]
    assert chart.mark == swept.flat_at


def test_the_real_write_stands_out_among_its_controls():
    """Rows come in the order of the result, and the real write is a series of its own."""
    stress = make_stress()
    chart = result_figures.shifts(stress).chart
    assert chart.rows == ("same template", "noise")
    assert [len(series.points) for series in chart.series] == [1, 1]
    assert len(result_figures.necessity(stress).chart.rows) == len(stress.necessity)


def test_located_neurons_lie_in_their_layers():
    """The grid has all layers and the number of all neurons of a layer."""
    from results.samples import make_neurons

    neuron_set = make_neurons()
    model = replace(neuron_set.model, layers=4, neurons=400)
    neurons = (LocatedNeuron("L3N40", 3, 40, 0.5, 9.0),)
    grid = result_figures.located(replace(neuron_set, model=model, selected=neurons)).chart
    assert (grid.neurons, grid.layers, grid.effects) == (100, 4, {"L3N40": -0.5})
