"""Helpers for tests of shared prefixes and reused layers: masks, answers, comparisons."""

from functools import cache

import numpy as np
import pytest
from independent import plain_loglikelihood, zeroed_by_hand
from tiny import tiny_llama

from broca.engine import Engine, EngineOptions
from broca.tasks import Generation, LogLikelihood

PREAMBLE = tuple(range(10, 60))

GATES = np.ones((5, 8), dtype=np.float32)
"""Gates of the tiny model's 8 heads: a mask of none, two of layer 1, two of both layers."""
GATES[1, 4] = GATES[2, 7] = GATES[3, [1, 5]] = GATES[4, [0, 2, 6]] = 0


@cache
def zeroed(mask):
    """Returns the tiny model in plain transformers, a mask's heads zeroed by hand."""
    heads = [(column // 4, column % 4) for column in np.flatnonzero(GATES[mask] == 0)]
    return zeroed_by_hand(tiny_llama(), heads)


def read_by_hand(requests):
    """Returns the log-likelihoods of every request under every mask in plain transformers."""
    return [
        LogLikelihood(*plain_loglikelihood(zeroed(mask), request.context, request.continuation))
        for mask in range(len(GATES))
        for request in requests
    ]


def run(tiny, requests, gates=GATES, **options):
    """Returns the answers to every request under every mask, and the engine."""
    engine = Engine(tiny, EngineOptions(**options))
    index = np.repeat(np.arange(len(gates)), len(requests))
    return engine.run(list(requests) * len(gates), gates, index), engine


def assert_same(answers, expected):
    """Asserts equal texts, log-likelihoods that agree to 1e-5 and equal greedy flags."""
    for answer, reference in zip(answers, expected, strict=True):
        if isinstance(answer, Generation):
            assert answer == reference
        else:
            assert answer.value == pytest.approx(reference.value, rel=1e-5, abs=1e-5)
            assert answer.greedy == reference.greedy
