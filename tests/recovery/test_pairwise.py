"""The model of pairs: what it fits, what it proposes."""

import itertools

import numpy as np

from broca.recovery import PairwiseModel

COUNT = 6


def worth(sets):
    """Columns 0 and 1 are worth something together, column 2 alone, column 3 spoils."""
    return 0.6 * (sets[:, 0] & sets[:, 1]) + 0.2 * sets[:, 2] - 0.3 * sets[:, 3]


def every_set():
    """All subsets."""
    return np.array(list(itertools.product([False, True], repeat=COUNT)))


def fitted(*, cost=0.02, largest=3):
    """A model fitted to all sets with a little noise."""
    sets = np.repeat(every_set(), 3, axis=0)
    rng = np.random.default_rng(0)
    noisy = worth(sets) + rng.normal(0, 0.02, len(sets))
    return PairwiseModel(COUNT, largest=largest, cost=cost).fit(sets, noisy)


def test_values_are_those_of_the_sets_less_their_cost():
    """Main effects and pairs describe this problem fully."""
    sets = every_set()
    expected = worth(sets) - 0.02 * sets.sum(axis=1)
    np.testing.assert_allclose(fitted().values(sets), expected, atol=0.03)


def test_best_is_the_best_of_all_sets_within_the_size():
    """From a start near it, against all subsets."""
    model, sets = fitted(), every_set()
    allowed = sets[sets.sum(axis=1) <= 3]
    found = model.best(np.array([True, False, False, False, False, False]))
    np.testing.assert_array_equal(found, allowed[np.argmax(model.values(allowed))])
    assert found.tolist() == [True, True, True, False, False, False]


def test_members_that_add_less_than_they_cost_stay_out():
    """With a dear member only the pair pays."""
    found = fitted(cost=0.25).best(np.array([True, True, False, False, False, False]))
    assert found.tolist() == [True, True, False, False, False, False]


def test_draws_vary_where_the_data_leave_it_open():
    """After two sets anything may be best; after all sets hardly anything but the best."""
    few = PairwiseModel(COUNT, largest=3, cost=0.0)
    few.fit(np.eye(COUNT, dtype=bool)[:2], np.array([0.1, 0.2]))
    start, rng = np.zeros(COUNT, dtype=bool), np.random.default_rng(1)
    assert len({tuple(few.draw(start, rng)) for _ in range(20)}) > 3
    sure = fitted()
    near = np.array([True, True, False, False, False, False])
    assert len({tuple(sure.draw(near, rng)) for _ in range(20)}) == 1
