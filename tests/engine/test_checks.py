"""Checks on what a model returns."""

import pytest
import torch

from broca.engine.checks import require_finite
from broca.errors import BadLogits


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("position", [(1, 0, 0), (1, 2, 4)])
def test_one_bad_value_is_found_and_its_request_named(value, position):
    """One NaN or infinite logit at any position raises an error that names the row's request."""
    logits = torch.randn(3, 3, 5, generator=torch.manual_seed(0))
    logits[position] = value
    with pytest.raises(BadLogits, match="request 20") as error:
        require_finite(logits, [10, 20, 30])
    assert error.value.request == 20


def test_large_logits_are_accepted():
    """Every finite value that the number format can hold is accepted."""
    large, lowest = torch.full((2, 1, 4), 1e30), torch.full((2, 1, 4), -6e4, dtype=torch.float16)
    for logits in (large, lowest):
        assert bool(torch.isfinite(logits).all())
        require_finite(logits, [0, 1])
