"""The knock-out of candidate sets, and the worth of the winner."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.recovery import PairwiseModel
from broca.searches import GeneratorSearch, Problem
from broca.searches.focus.joint import Promising
from broca.searches.focus.screening import Screened
from broca.searches.focus.settling import Winner, knock_out
from broca.searches.measuring import Measuring

COUNT = 12
ROWS = 600


def meet(losses, *, stop=True):
    """Runs a knock-out of single components with these losses; returns winner and measuring."""
    problem = Problem(COUNT, np.arange(40), 5, None, 0, confirm=np.arange(40, 80))
    measuring = Measuring(problem, 10_000, stop=stop)
    nothing = np.zeros(COUNT)
    screened = Screened(nothing, nothing, np.arange(COUNT), nothing, nothing, 1.0, None, None)
    sets = np.eye(COUNT, dtype=bool)
    model = PairwiseModel(COUNT, largest=5, cost=0.02).fit(sets, losses, noise=0.05)
    steps = knock_out(measuring, Promising(screened, sets, model), ROWS, least=0.1)

    def execute(plan):
        return Measurement(plan, 1.0 - plan.masks[plan.mask_index] @ losses)

    return searches.run(GeneratorSearch(steps), execute), measuring


def test_equals_meet_once():
    """Sets that cost every item the same are compared in one heat, and the other rows are saved."""
    winner, measuring = meet(np.full(COUNT, 0.5))
    assert winner.members.sum() == 1
    assert winner.worth == pytest.approx(0.5, abs=0.02)
    assert measuring.rows <= ROWS / 3
    assert measuring.budget == 10_000 - (ROWS - measuring.rows)
    assert measuring.enough == ["the 6 best sets are equal on every item"]


@pytest.mark.parametrize(
    ("losses", "options"),
    [
        (np.linspace(0.2, 0.6, COUNT), {}),  # the sets differ
        (np.zeros(COUNT), {}),  # no set does harm
        (np.full(COUNT, 0.5), {"stop": False}),
    ],
)
def test_others_meet_again(losses, options):
    """Sets that differ or do no harm use all rows, as without `stop`, and the best one wins."""
    winner, measuring = meet(losses, **options)
    assert winner.worth == pytest.approx(losses.max(), abs=0.05)
    assert losses[winner.members].tolist() == [losses.max()]
    assert 0.9 * ROWS < measuring.rows <= ROWS
    assert (measuring.budget, measuring.enough) == (10_000, [])


def test_winner_is_below_only_what_it_surely_is_below():
    """A worth is surely below a bound if it is lower by two standard errors."""
    members, drops = np.ones(1, dtype=bool), np.array([0.0, 1.0])
    winner = Winner(members, drops, np.zeros(2), worth=0.01, error=0.015)
    assert winner.surely_below(0.05)
    assert not winner.surely_below(0.03)
