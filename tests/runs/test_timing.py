"""Estimated costs of methods agree with the rows and tokens that they use."""

import numpy as np
import pytest
from broca.runs.timing import count_rows, rows_within, timing_of
from journals import totals

import broca
from broca import searches
from broca.measurement import Measurement
from broca.runs.run import Run
from broca.runs.task_sets import claim_tasks, load_tasks
from broca.runs.workspace import Workspace
from broca.searches import METHODS, Problem, make_search
from broca.tasks import Catalog


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_the_most_that_a_search_asks_for(method):
    """No search exceeds its budget, nor its estimate by more than a few rows that answers decide.

    Searches of a fixed size equal their estimates.
    """
    problem = Problem(
        24, np.arange(6), 3, 400, 0, confirm=np.arange(6, 12), continuous=True, differentiable=True
    )
    lengths = np.arange(1, 13)
    cost = count_rows(method, problem, lengths, {"accuracy": 100.0, "probability": 100.0})
    rows = tokens = 0

    def execute(plan):
        nonlocal rows, tokens
        rows += plan.cost
        tokens += lengths[plan.item_index].sum() * (plan.cost // len(plan))
        rng = np.random.default_rng(rows)
        gradients = rng.normal(size=(len(plan), 24)).astype(np.float32) if plan.gradients else None
        return Measurement(plan, rng.random(len(plan)), gradients)

    searches.run(make_search(method, problem), execute)
    # co-ablation measures a few masks more if it finds fewer leaders; the rows of pooled that do
    # not fill another round of comparison depend on its candidates
    slack = {"co-ablation": 12, "pooled": 4}.get(method, 0)
    assert 0 < rows <= min(400, cost.rows + slack)
    assert cost.rows <= 400
    assert cost.seconds == pytest.approx(cost.tokens / 100)
    if method in ("one-shot", "cs-bernoulli", "cs-stratified"):
        assert (cost.rows, cost.tokens) == (rows, tokens)


def test_greedy_is_counted_to_its_end():
    """The estimate has k full sweeps, although a real search may end earlier."""
    problem = Problem(30, np.arange(20), 3, None, 0)
    cost = count_rows("greedy", problem, np.ones(20, dtype=np.int64), {"accuracy": 1.0})
    assert cost.rows == (1 + 30 + 29 + 28) * 20


def test_a_method_that_cannot_run_says_why():
    """The estimate has the message of the refusal and no rows."""
    problem = Problem(30, np.arange(20), 3, 20, 0)
    cost = count_rows("one-shot", problem, np.ones(20, dtype=np.int64), {"accuracy": 1.0})
    assert "too few for one-shot" in cost.problem
    assert cost.rows == 0


def test_a_run_is_timed_once(tmp_path):
    """More time allows more rows; another process has the speed that the journal keeps."""
    catalog = Catalog()
    model = broca.load("reference-small", device="cpu")
    benchmarks = load_tasks(model, ["capitals", "sorting"], catalog)
    tasks = claim_tasks("capitals", benchmarks, items=12, seed=0, limit=12)
    with Workspace(tmp_path / "rows.sqlite") as space:
        run = Run(model, tasks, space, settings={"test": "timing"})
        places = tasks.places["locate"]
        rows = rows_within(run, 10.0, places)
        assert rows > 100
        assert rows_within(run, 1000.0, places) == pytest.approx(100 * rows, rel=0.01)
        timing = timing_of(run, sample=32)
        assert set(timing.tokens_per_second) == {"accuracy", "probability"}
        before = totals(space.journal)
    with Workspace(tmp_path / "rows.sqlite") as space:
        again = Run(model, tasks, space, settings={"test": "timing"})
        assert timing_of(again, sample=32) == timing
        assert totals(space.journal) == before
        other = Run(model, tasks, space, settings={"test": "another run"})
        assert timing_of(other, sample=32) != timing
