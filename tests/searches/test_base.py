"""Problems within a budget, and generators as searches."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches import GeneratorSearch, Problem, run
from broca.searches.base import members_first, most_negative


def respond(plan):
    """Responds to every row with the number of its item."""
    return Measurement(plan, plan.item_index.astype(float))


def test_a_generator_is_a_search():
    """The generator starts at the first `ask`, which may be repeated, and returns any result."""
    started = []

    def rounds():
        started.append(True)
        first = yield Plan.crossed(np.zeros((1, 3), dtype=bool), np.arange(2))
        second = yield Plan.crossed(np.zeros((1, 3), dtype=bool), np.arange(2, 4))
        return first.responses.sum() + second.responses.sum()

    search = GeneratorSearch(rounds())
    assert not started
    assert search.ask() is search.ask()
    with pytest.raises(AssertionError, match="ask and tell first"):
        search.result()
    assert run(search, respond) == 6
    assert search.ask() is None


def test_a_generator_without_plans_ends_at_once():
    """The result is available after the first `ask`, even if it is None."""

    def rounds():
        return
        yield

    search = GeneratorSearch(rounds())
    assert search.ask() is None
    assert search.result() is None


def test_a_budget_pays_for_items():
    """A budget limits the number of items, and one that is too small is refused."""
    problem = Problem(4, np.arange(20), 2, 60, 0)
    assert problem.items_at(6, method="m", fewest=4).tolist() == list(range(10))
    assert problem.items_within(20, method="m").tolist() == [0, 1, 2]
    with pytest.raises(BadInput, match="set `rows` to 80 or more"):
        problem.items_at(20, method="m", fewest=4)
    with pytest.raises(BadInput, match="set `rows` to 61 or more"):
        problem.items_within(61, method="m")
    unlimited = Problem(4, np.arange(20), 2, None, 0)
    assert len(unlimited.items_at(20, method="m", fewest=4)) == 20


def test_what_does_not_harm_is_not_selected():
    """Fewer than k are selected, or none with the reason."""
    order, selected, reason = most_negative(np.array([0.1, -0.3, 0.0, -0.1]), 3, reason="none")
    assert (order, selected, reason) == ((1, 3, 2, 0), (1, 3), "")
    assert most_negative(np.zeros(2), 1, reason="none")[1:] == ((), "none")


def test_members_come_first_and_are_not_universal():
    """Equal contrasts keep their order; universal components are ordered by the others' loss."""
    contrast = np.array([-0.1, -0.5, 0.0, -0.3, -0.1, 0.0])
    others = np.array([0.0, -0.2, -0.2, -0.1, -0.6, 0.0])
    needed = others < 0
    order, members, universal = members_first(np.array([4, 3, 0]), contrast, others, needed)
    assert members == (3, 4, 0)
    assert order == (3, 4, 0, 1, 2, 5)
    assert universal == (1, 2)
    nothing = members_first(np.array([], dtype=np.intp), contrast, others, needed)
    assert nothing == ((1, 3, 0, 4, 2, 5), (), (4, 1, 2, 3))
