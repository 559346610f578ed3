"""The model of pairs: its fits and its proposals."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from broca.recovery import PairwiseModel

COUNT = 6


def worth(sets):
    """Columns 0 and 1 have a joint value, column 2 has a value alone, column 3 lowers the value."""
    return 0.6 * (sets[:, 0] & sets[:, 1]) + 0.2 * sets[:, 2] - 0.3 * sets[:, 3]


def every_set():
    """Returns all subsets."""
    return np.array(list(itertools.product([False, True], repeat=COUNT)))


def fitted(*, cost=0.02, largest=3):
    """A model fitted to all sets with a little noise."""
    sets = np.repeat(every_set(), 3, axis=0)
    rng = np.random.default_rng(0)
    noisy = worth(sets) + rng.normal(0, 0.02, len(sets))
    return PairwiseModel(COUNT, largest=largest, cost=cost).fit(sets, noisy, noise=0.02)


def test_values_are_those_of_the_sets():
    """Main effects and pairs describe this problem fully; members have the given cost."""
    sets, model = every_set(), fitted()
    np.testing.assert_allclose(model.values(sets), worth(sets), atol=0.03)
    np.testing.assert_allclose(model.values(sets) - model.net(sets), 0.02 * sets.sum(axis=1))


@pytest.mark.parametrize("pairs", [1.0, 1 / 3])
def test_fit_is_ridge_regression_towards_the_prior(pairs):
    """The fit equals scikit-learn's with the penalty of the chosen scale."""
    rng = np.random.default_rng(3)
    sets = rng.random((40, COUNT)) < 0.4
    prior = rng.normal(0, 0.1, COUNT)
    values = worth(sets) + rng.normal(0, 0.1, len(sets))
    model = PairwiseModel(COUNT, largest=3, cost=0.0, prior=prior, pairs=pairs)
    model.fit(sets, values, noise=0.1)
    first, second = np.triu_indices(COUNT, 1)
    # scaling a column down scales the prior of its coefficient down
    features = np.hstack([sets, pairs * (sets[:, first] & sets[:, second])]).astype(float)
    full = np.concatenate([prior, np.zeros(len(first))])
    candidates = [
        features @ full
        + Ridge(alpha=(0.1 / scale) ** 2, fit_intercept=False)
        .fit(features, values - features @ full)
        .predict(features)
        for scale in (0.01, 0.03, 0.1, 0.3)
    ]
    gaps = [np.abs(model.values(sets) - candidate).max() for candidate in candidates]
    assert min(gaps) < 1e-9
    assert sorted(gaps)[1] > 1e-3


def test_what_members_add_says_what_sets_are_worth():
    """Differences between sets that reach all pairs identify the sets' values."""
    sets = every_set()
    rows, columns = np.nonzero(sets)
    smaller = sets[rows].copy()
    smaller[np.arange(len(rows)), columns] = False
    adds = worth(sets[rows]) - worth(smaller)
    model = PairwiseModel(COUNT, largest=3, cost=0.0)
    model.fit(sets[rows], adds, noise=np.full(len(rows), 0.02), references=smaller)
    np.testing.assert_allclose(model.values(sets), worth(sets), atol=0.01)


def test_values_count_by_their_precision():
    """Of two values of the same set the more precise value has more weight."""
    alone = np.eye(COUNT, dtype=bool)[[2, 2]]
    model = PairwiseModel(COUNT, largest=3, cost=0.0)
    model.fit(alone, np.array([0.2, 0.8]), noise=np.array([0.01, 1.0]))
    assert model.values(alone)[0] == pytest.approx(0.2, abs=0.01)


def test_unmeasured_sets_are_worth_what_was_believed():
    """Sets without measured members keep their prior values."""
    prior = np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    model = PairwiseModel(COUNT, largest=3, cost=0.0, prior=prior)
    model.fit(np.eye(COUNT, dtype=bool)[1:2], np.array([0.2]), noise=0.05)
    assert model.values(np.eye(COUNT, dtype=bool)[:1])[0] == pytest.approx(0.3)


def test_best_is_the_best_of_all_sets_within_the_size():
    """The climb from a near start finds the best of all subsets."""
    model, sets = fitted(), every_set()
    allowed = sets[sets.sum(axis=1) <= 3]
    best = model.best(np.array([True, False, False, False, False, False]))
    np.testing.assert_array_equal(best, allowed[np.argmax(model.net(allowed))])
    assert best.tolist() == [True, True, True, False, False, False]


def test_members_that_add_less_than_they_cost_stay_out():
    """If members are expensive, only the pair is worth its cost."""
    best = fitted(cost=0.25).best(np.array([True, True, False, False, False, False]))
    assert best.tolist() == [True, True, False, False, False, False]


def test_draws_vary_where_the_data_leave_it_open():
    """Draws vary after two measured sets and agree after all sets."""
    uncertain = PairwiseModel(COUNT, largest=3, cost=0.0)
    uncertain.fit(np.eye(COUNT, dtype=bool)[:2], np.array([0.1, 0.2]), noise=0.1)
    start, rng = np.zeros(COUNT, dtype=bool), np.random.default_rng(1)
    assert len({tuple(uncertain.draw(start, rng)) for _ in range(20)}) > 3
    sure = fitted()
    near = np.array([True, True, False, False, False, False])
    assert len({tuple(sure.draw(near, rng)) for _ in range(20)}) == 1
