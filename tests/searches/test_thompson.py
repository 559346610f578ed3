"""Thompson sampling: its belief and the allocation of rows."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.searches import Problem, make_search
from broca.searches.thompson import _Belief
from broca.testing import planted_problem

ITEMS = np.arange(20)


def test_belief_is_that_of_bayesian_regression():
    """Mean and deviations equal the formulas of Bayesian regression, written for single rows."""
    rng = np.random.default_rng(0)
    masks = rng.random((50, 6)) < 0.3
    changes = masks @ np.array([-1, -0.5, 0, 0, 0, 0]) + rng.normal(0, 0.1, 50)
    belief = _Belief(6)
    belief.learn(masks, changes)
    noise = np.mean(changes**2)  # the first estimate of the noise is the whole variance
    matrix = np.vstack([masks / np.sqrt(noise), np.eye(6) / np.abs(changes).max()])
    target = np.concatenate([changes / np.sqrt(noise), np.zeros(6)])
    np.testing.assert_allclose(belief.mean, np.linalg.lstsq(matrix, target, rcond=None)[0])
    np.testing.assert_allclose(
        belief.deviations(), np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))
    )


def test_rows_go_where_harm_is():
    """In late rounds, harmful components are ablated far more often than the others."""
    planted = planted_problem(components=40, planted=3, effect=0.3, noise=0.05, seed=1)
    plans = []

    def execute(plan):
        plans.append(plan)
        return planted.run(plan)

    problem = Problem(40, ITEMS, 3, 820, 0)
    searches.run(make_search("thompson", problem), execute)
    late = np.mean(np.vstack([plan.masks for plan in plans[-10:]]), axis=0)
    others = np.delete(late, planted.planted)
    assert late[list(planted.planted)].min() > 5 * others.mean()
    assert sum(len(plan) for plan in plans) == 820
    assert max(plan.masks.sum(axis=1).max() for plan in plans) <= 3


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (79, {}, "needs 80 at least"),
        (None, {"group": 41}, "groups"),
        (None, {"rounds": 0}, "round"),
    ],
)
def test_bad_settings_are_refused(rows, options, message):
    """The message names the option and its permitted values."""
    with pytest.raises(BadInput, match=message):
        make_search("thompson", Problem(40, ITEMS, 3, rows, 0), **options)
