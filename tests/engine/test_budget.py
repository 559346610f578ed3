"""The token budget."""

from types import SimpleNamespace

import pytest
import torch

from broca.engine.budget import Budget
from broca.errors import OutOfMemory


@pytest.mark.parametrize("shortage", ["CUDA", "CPU"])
def test_batches_fill_the_budget_and_shrink_with_it(tiny, shortage):
    """Batches follow the length of their first row; a batch that does not fit is run in parts.

    On a CPU a cached token counts less than one that is read: it takes memory but little time.
    """
    budget, lengths, tried, done = Budget(tiny, 100), [50, 40, 20, 20, 20, 10, 10, 10], [], []
    assert 1 < budget.rows(10, cached=160) < budget.rows(10)
    while lengths:
        batch = budget.batch(lengths, lambda length: length)
        tried.append(batch)
        with budget.attempt(len(batch)):
            if len(tried) == 2 and shortage == "CUDA":
                raise torch.OutOfMemoryError("no memory")
            if len(tried) == 2:
                torch.empty(2**55)
            done += batch
            del lengths[: len(batch)]
    assert tried == [[50, 40], [20] * 3 + [10] * 2, [20, 20], [20, 10], [10, 10]]
    assert done == [50, 40, 20, 20, 20, 10, 10, 10]
    with pytest.raises(OutOfMemory, match="not even one row fits"), budget.attempt(1):
        torch.empty(2**55)
    with pytest.raises(RuntimeError, match="another"), budget.attempt(5):
        raise RuntimeError("another")


def test_budget_from_memory_leaves_a_safety(tiny, monkeypatch):
    """A first budget is 80 % of the free memory."""
    gpu = SimpleNamespace(
        device=torch.device("cuda", 3), model=tiny.model, dtype="float32", structure=tiny.structure
    )
    free = 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 4 * free))
    monkeypatch.setitem(vars(tiny.model.config), "intermediate_size", [64, 128])  # as Gemma 3n
    keys_values = sum(2 * one.kv_heads * one.head_dim * 4 for one in tiny.structure.projections)
    token = keys_values + 6 * 4 * 4 * 32 + 4 * 258 // 16
    assert Budget(gpu, None).tokens == pytest.approx(0.8 * free / token, rel=0.01)
