"""Masks, intercept and options of compressed sensing."""

import pytest
from searches.test_searches import ITEMS, solve

from broca.errors import BadInput
from broca.searches import Problem, make_search
from broca.testing import planted_problem


@pytest.mark.parametrize("method", ["cs-bernoulli", "cs-stratified"])
def test_compressed_sensing_can_fix_the_intercept(method):
    """The intercept is fixed at the baseline as in eq. (1), and the ranking records it."""
    planted = planted_problem(components=40, effect=0.15, noise=0.02, seed=8)
    ranking, _ = solve(method, planted, intercept="baseline", sparsity=0.08)
    assert set(ranking.selected) == set(planted.planted)
    assert ranking.options["intercept"] == "baseline"
    assert ranking.options["sparsity"] == 0.08


def test_compressed_sensing_defaults_to_200_masks():
    """200 masks and the intact model are measured on every item."""
    _, spent = solve("cs-stratified", planted_problem(components=40, seed=9))
    assert spent == 201 * 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsty": 0.1}, "did you mean 'sparsity'"),
        ({"design": "x"}, "no option 'design'"),
        ({"intercept": "none"}, "'fitted' or 'baseline'"),
        ({"sparsity": 2}, "between 0 and 1"),
    ],
)
def test_bad_option_is_refused(options, message):
    """The message names the unknown option or the permitted values."""
    with pytest.raises(BadInput, match=message):
        make_search("cs-stratified", Problem(40, ITEMS, 1, None, 0), **options)
