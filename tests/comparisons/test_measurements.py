"""Rows are equal for all models; effects and errors follow the formulas and hold in simulation."""

import numpy as np
import pytest
from scipy import stats

from broca import Run, TaskOptions, Workspace
from broca.comparisons import measurements
from broca.errors import BadInput
from broca.measurement import Plan
from broca.runs.task_sets import equal_tasks, load_tasks
from broca.tasks import Catalog


@pytest.fixture(scope="module")
def run(reference):
    """A run on a few items of two tasks."""
    benchmarks = load_tasks(
        reference, ["addition", "sorting"], Catalog(), options=TaskOptions(limit=60)
    )
    with Workspace(None) as space:
        tasks = equal_tasks(benchmarks, "locate", "report", items=20, seed=0, limit=30)
        yield Run(reference, tasks, space, settings={"test": "comparison"})


@pytest.fixture(scope="module")
def design(run):
    """The rows of the run."""
    return measurements.draw_design(
        run, rows=240, seed=3, response="accuracy", places=run.tasks.places["locate"]
    )


def test_items_are_asked_alike_and_masks_vary_in_size(run, design):
    """Masks vary in size, items occur equally often, and equal seeds draw equal rows."""
    assert design.masks.shape == (240, 96)
    sizes = design.masks.sum(axis=1)
    assert len(set(sizes.tolist())) > 2
    assert np.median(sizes) == pytest.approx(design.size, abs=max(2, design.size))
    for name, items in design.items.items():
        assert np.ptp(np.bincount(items, minlength=len(run.tasks.places["locate"][name]))) <= 1
    located = run.tasks.places["locate"]
    again = measurements.draw_design(run, rows=240, seed=3, response="accuracy", places=located)
    assert np.array_equal(again.masks, design.masks)
    assert all(np.array_equal(again.items[name], design.items[name]) for name in design.items)


def test_changes_and_report_answers_are_those_of_plain_runs(run, design):
    """Every row equals the engine's accuracy under the same mask."""
    measured = measurements.measure(
        run, design, [["L0H1", "L1H2"]], places=run.tasks.places["locate"]
    )
    positions = run.tasks.places["locate"]["addition"]
    for row in (0, 7, 41):
        place = positions[design.items["addition"][row]]
        benchmark, item = run.bank[place]
        columns = np.flatnonzero(design.masks[row]).tolist()
        plan = Plan.crossed(np.vstack([run.mask(columns), run.mask([])]), np.array([place]))
        ablated, intact = (benchmark.score(item, outputs) for outputs in run.answers(plan))
        assert measured.changes["addition"][row] == ablated - intact
    columns = run.model.components.columns("L0H1+L1H2")
    for name, rows in measured.reported.items():
        assert rows.shape == (2, 30)
        assert measured.trial.score(name, rows[0]) == run.scores(())[name]
        assert measured.trial.score(name, rows[1]) == run.scores(columns)[name]
    assert measured.info.fingerprint == run.model.fingerprint
    assert measured.at_chance == ()


def simulated(seed, *, rows=600, components=12, items=40, effects=None, slopes=0.3, noise=0.5):
    """Returns random masks, changes whose effects vary by item around known means, and items."""
    rng = np.random.default_rng(seed)
    masks = rng.random((rows, components)) < 0.25
    item = rng.integers(items, size=rows)
    means = np.zeros(components) if effects is None else effects
    of_item = means + slopes * rng.normal(size=(items, components))
    return masks, (masks * of_item[item]).sum(axis=1) + noise * rng.normal(size=rows), item


def test_effects_and_errors_are_those_of_the_formula():
    """Effects are least squares, and errors those of fits without each item."""
    masks, changes, item = simulated(0)
    estimates = measurements.estimate_effects(masks, changes, item)
    design = np.column_stack([np.ones(len(masks)), masks])
    coefficients, *_ = np.linalg.lstsq(design, changes, rcond=None)
    rest = [item != number for number in range(40)]
    without = [np.linalg.lstsq(design[rows], changes[rows], rcond=None)[0] for rows in rest]
    errors = np.sqrt(39 / 40 * ((without - coefficients) ** 2).sum(axis=0))
    np.testing.assert_allclose(estimates.values, coefficients[1:], atol=1e-10)
    np.testing.assert_allclose(estimates.errors, errors[1:], rtol=1e-8)
    p_values = 2 * stats.t.sf(np.abs(coefficients / errors), 39)
    np.testing.assert_allclose(estimates.p_values(), p_values[1:], rtol=1e-6)


def test_intervals_hold_for_new_items():
    """At least nine in ten of 95 % intervals contain the true effect although items differ."""
    effects = np.linspace(-0.5, 0.5, 12)
    held = []
    for seed in range(60):
        low, high = measurements.estimate_effects(*simulated(seed, effects=effects)).with_ends(
            0.05
        )[1:]
        held += ((low <= effects) & (effects <= high)).tolist()
    assert 0.91 <= np.mean(held) <= 0.985


def test_too_few_rows_are_refused():
    """Too few rows or distinct masks are refused; the default grows with components."""
    masks, changes, item = simulated(0)
    with pytest.raises(BadInput, match="do not separate 12 components"):
        measurements.estimate_effects(np.repeat(masks[:5], 120, axis=0), changes, item)
    assert measurements.row_count(None, 48) == measurements.FEWEST_ROWS
    assert measurements.row_count(None, 1000) == 6000
    assert measurements.row_count(300, 48) == 300
