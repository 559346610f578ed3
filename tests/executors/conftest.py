"""Fixtures for the tests of several executors."""

import pytest

from broca.tasks import Catalog, RequestTokenizer


@pytest.fixture(scope="module")
def bank(reference):
    """Six items of a generation task and six of a multiple-choice task."""
    catalog, tokenizer = Catalog(), RequestTokenizer.of(reference)
    benchmarks = [catalog.load(name, tokenizer) for name in ("addition", "mc_biology")]
    return [(benchmark, item) for benchmark in benchmarks for item in benchmark.items[:6]]
