"""Screening lists the components that change answers in either direction."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.searches import GeneratorSearch, Problem
from broca.searches.focus.screening import SHORT, screen
from broca.searches.measuring import Measuring

COUNT = 80
MOVERS = (7, 17, 27, 37)


def rounds(measuring):
    """Measures the intact model, then runs the screening alone."""
    yield from measuring.measure_intact(40)
    return (yield from screen(measuring, 0.1, 400))


def run(steps, respond):
    """Runs a generator of plans; `respond(mask, item)` is a row's response."""

    def execute(plan):
        responses = [
            respond(plan.masks[mask], int(item))
            for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
        ]
        return Measurement(plan, np.array(responses))

    return searches.run(GeneratorSearch(steps), execute)


def screened(respond, seed):
    """Returns the short list of a task of 40 items."""
    problem = Problem(COUNT, np.arange(40), 5, None, seed, continuous=True)
    return run(rounds(Measuring(problem, 1000)), respond).short


@pytest.mark.parametrize("seed", range(5))
def test_components_that_scatter_answers_are_listed(seed):
    """Components that raise and lower answers equally, with no mean effect, are listed."""

    def respond(mask, item):
        rng = np.random.default_rng([seed, item])
        moves = rng.choice([-0.3, 0.3], COUNT)
        noise = 0.01 * np.random.default_rng([seed, item, *np.flatnonzero(mask)]).normal()
        return 0.5 + noise + sum(moves[column] for column in MOVERS if mask[column])

    short = screened(respond, seed)
    assert len(short) == SHORT
    assert set(MOVERS) <= set(short.tolist())


@pytest.mark.parametrize("seed", range(5))
def test_components_that_harm_come_first(seed):
    """Components that cost the task most lead the list; others that change answers follow."""

    def respond(mask, item):
        moves = np.random.default_rng([seed, item]).choice([-0.1, 0.1])
        noise = 0.02 * np.random.default_rng([seed, item, *np.flatnonzero(mask)]).normal()
        return 0.9 + noise - 0.3 * mask[3] - 0.2 * mask[50] + moves * mask[60]

    short = screened(respond, seed).tolist()
    assert short[:2] == [3, 50]
    assert 60 in short
