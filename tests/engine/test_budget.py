"""The token budget."""

from types import SimpleNamespace

import pytest
import torch

from broca.engine.budget import Budget
from broca.errors import OutOfMemory


def test_cached_tokens_count_less_on_a_cpu(tiny):
    """A cached token takes memory but little time, so it counts less than a token that is read."""
    budget = Budget(tiny, 100)
    assert 1 < budget.rows(10, cached=160) < budget.rows(10)


def test_batches_fill_the_budget_and_shrink_with_it(tiny):
    """Batches follow the length of their first row; a batch that does not fit is run in parts."""
    budget, lengths, tried, done = Budget(tiny, 100), [50, 40, 20, 20, 20, 10, 10, 10], [], []
    while lengths:
        batch = budget.batch(lengths, lambda length: length)
        tried.append(batch)
        with budget.attempt(len(batch)):
            if len(tried) == 2:
                raise torch.OutOfMemoryError("no memory")
            done += batch
            del lengths[: len(batch)]
    assert tried == [[50, 40], [20] * 3 + [10] * 2, [20, 20], [20, 10], [10, 10]]
    assert done == [50, 40, 20, 20, 20, 10, 10, 10]
    assert budget.tokens == 50


def test_budget_from_memory_leaves_a_safety(tiny, monkeypatch):
    """A first budget is 80 % of the free memory."""
    gpu = SimpleNamespace(
        device=torch.device("cuda", 3), model=tiny.model, dtype="float32", structure=tiny.structure
    )
    free = 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 4 * free))
    config = tiny.model.config
    projections = tiny.structure.projections
    keys_values = sum(2 * layer.kv_heads * layer.head_dim * 4 for layer in projections)
    token = keys_values + 6 * 4 * 4 * config.hidden_size + 4 * config.vocab_size // 16
    assert Budget(gpu, None).tokens == pytest.approx(0.8 * free / token, rel=0.01)


def test_a_cpu_without_memory_halves_the_budget(tiny):
    """A RuntimeError for want of CPU memory halves the budget, as on a GPU."""
    budget = Budget(tiny, 100)
    with budget.attempt(5):
        torch.empty(2**55)
    assert budget.tokens == 50
    with pytest.raises(OutOfMemory, match="not even one row fits"), budget.attempt(1):
        torch.empty(2**55)
    with pytest.raises(RuntimeError, match="another"), budget.attempt(5):
        raise RuntimeError("another")
