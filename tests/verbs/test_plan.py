"""`broca.plan` states what the methods would cost on a shipped model."""

from functools import partial

import pytest
from dying import killed_in_batch
from journals import totals

import broca
from broca.results.files import encode
from broca.searches import METHODS
from broca.store import Journal, read_runs


def test_plan_of_a_shipped_model(reference):
    """The plan has every method's rows, and speeds timed in two responses."""
    plan = broca.plan(reference, "mc_biology", others="addition", items=20, sample=8)
    assert [(cost.method, cost.response) for cost in plan.methods] == [
        (name, method.response) for name, method in METHODS.items()
    ]
    assert set(plan.tokens_per_second) == {"accuracy", "probability"}
    assert (plan.timed_rows, plan.components) == (16, 96)
    assert plan.memory_bytes > 2**20
    rows = {cost.method: cost.rows for cost in plan.methods}
    assert (rows["one-shot"], rows["cs-stratified"]) == (97 * 20, 201 * 20)


@pytest.mark.long
def test_a_plan_with_a_journal_is_repeated_as_it_was(small, tmp_path):
    """A killed plan goes on; the same call on its journal gives the same estimate, to the bit."""
    path = tmp_path / "j.sqlite"
    arguments = {"others": "sorting", "items": 8, "sample": 8, "journal": path}
    killed_in_batch(partial(broca.plan, small, "capitals", **arguments), 2)
    assert totals(path)["batches"] == 1
    plan = broca.plan(small, "capitals", **arguments)
    assert encode(broca.plan(small, "capitals", **arguments)) == encode(plan)
    assert broca.plan(small, "capitals", **{**arguments, "sample": 9}).timed_rows == 18
    with Journal(path, read_only=True) as journal:
        assert [run.finished is not None for run in read_runs(journal)] == [True, True]
