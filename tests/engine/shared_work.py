"""Requests under masks of the tiny model, for tests of what rows share."""

from __future__ import annotations

import numpy as np
import pytest

from broca.engine import Engine, EngineOptions
from broca.tasks import Generation

PREAMBLE = tuple(range(10, 60))


def five_masks():
    """Gates of 8 heads, `(5, 8)`: intact, two of the upper layer alone, two of both layers."""
    masks = np.ones((5, 8), dtype=np.float32)
    masks[1, 4] = masks[2, 7] = masks[3, [1, 5]] = masks[4, [0, 2, 6]] = 0
    return masks


def heads(gates, mask):
    """(layer, head) pairs that a mask ablates."""
    return [(column // 4, column % 4) for column in np.flatnonzero(gates[mask] == 0)]


def run(tiny, requests, gates, **options):
    """Answers of every request under every mask, and the engine."""
    engine = Engine(tiny, EngineOptions(**options))
    index = np.repeat(np.arange(len(gates)), len(requests))
    return engine.run(list(requests) * len(gates), gates, index), engine


def same(answers, expected):
    """Texts equal, log-likelihoods to 1e-4, greedy flags equal."""
    for one, other in zip(answers, expected, strict=True):
        if isinstance(one, Generation):
            assert one == other
        else:
            assert one.value == pytest.approx(other.value, abs=1e-4)
            assert one.greedy == other.greedy
