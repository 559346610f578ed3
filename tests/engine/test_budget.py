"""The token budget."""

import pytest
import torch

from broca.engine.budget import Budget
from broca.errors import OutOfMemory


def test_rows_fill_the_budget(tiny):
    """As many rows as fit, and never none."""
    budget = Budget(tiny, 100)
    assert budget.rows(10) == 10
    assert budget.rows(33) == 3
    assert budget.rows(1000) == 1


def test_cached_tokens_count_less_on_a_cpu(tiny):
    """They take memory, not time."""
    budget = Budget(tiny, 100)
    assert 1 < budget.rows(10, cached=160) < budget.rows(10)


def test_memory_shortage_halves_the_budget(tiny):
    """The attempt is reported as failed; nothing is raised."""
    budget = Budget(tiny, 100)

    def fails():
        raise torch.OutOfMemoryError("no memory")

    assert not budget.attempt(fails, rows=2)
    assert budget.tokens == 50
    assert budget.attempt(lambda: None, rows=2)


def test_single_row_that_does_not_fit_is_an_error(tiny):
    """Halving could not help it."""

    def fails():
        raise torch.OutOfMemoryError("no memory")

    with pytest.raises(OutOfMemory):
        Budget(tiny, 100).attempt(fails, rows=1)


def test_other_errors_pass(tiny):
    """Only memory is mended."""

    def fails():
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        Budget(tiny, 100).attempt(fails, rows=5)
