"""`broca.plan` states what the methods would cost on a shipped model."""

import pytest

import broca
from broca.errors import BadInput
from broca.results.codec import encode
from broca.searches import METHODS


def test_plan_of_a_shipped_model(reference):
    """The plan has every method's rows, and speeds timed in two responses."""
    plan = broca.plan(reference, "mc_biology", others="addition", items=20, sample=8)
    assert [cost.method for cost in plan.methods] == list(METHODS)
    assert set(plan.tokens_per_second) == {"accuracy", "probability"}
    assert plan.timed_rows == 16
    assert plan.components == 96
    assert plan.memory_bytes > 2**20
    rows = {cost.method: cost.rows for cost in plan.methods}
    assert rows["one-shot"] == 97 * 20
    assert rows["cs-stratified"] == 201 * 20
    assert '"method": "cs-fresh"' in encode(plan)


def test_bad_numbers_are_refused(reference):
    """A sample of 0 rows is refused."""
    with pytest.raises(BadInput, match="`sample` must be at least 1"):
        broca.plan(reference, "mc_biology", sample=0)
