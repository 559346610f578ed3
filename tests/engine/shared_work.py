"""Helpers for tests of shared prefixes and reused layers: masks, answers, comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from broca.engine import Engine, EngineOptions
from broca.tasks import Generation

PREAMBLE = tuple(range(10, 60))


def five_masks():
    """Returns gates of 8 heads, `(5, 8)`: one intact mask, two of layer 1, two of both layers."""
    masks = np.ones((5, 8), dtype=np.float32)
    masks[1, 4] = masks[2, 7] = masks[3, [1, 5]] = masks[4, [0, 2, 6]] = 0
    return masks


def heads(gates, mask):
    """Returns the (layer, head) pairs that a mask ablates."""
    return [(column // 4, column % 4) for column in np.flatnonzero(gates[mask] == 0)]


def run(tiny, requests, gates, **options):
    """Returns the answers to every request under every mask, and the engine."""
    engine = Engine(tiny, EngineOptions(**options))
    index = np.repeat(np.arange(len(gates)), len(requests))
    return engine.run(list(requests) * len(gates), gates, index), engine


def same(answers, expected):
    """Asserts equal texts, log-likelihoods that agree to 1e-4 and equal greedy flags."""
    for answer, reference in zip(answers, expected, strict=True):
        if isinstance(answer, Generation):
            assert answer == reference
        else:
            assert answer.value == pytest.approx(reference.value, abs=1e-4)
            assert answer.greedy == reference.greedy
