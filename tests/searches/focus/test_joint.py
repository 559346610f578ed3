"""Joint rounds learn the effect of a pair from a sufficient number of sets."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.searches import GeneratorSearch, Problem
from broca.searches.focus.joint import joint_rounds
from broca.searches.focus.screening import Screened
from broca.searches.measuring import Measuring

COUNT = 12


def rounds(measuring, rows):
    """Measures the intact model, then joint rounds over all components, as if none stood out."""
    yield from measuring.measure_intact(20)
    nothing = np.zeros(COUNT)
    screened = Screened(nothing, nothing, np.arange(COUNT), nothing, nothing, 1.0, None, None)
    return (yield from joint_rounds(measuring, screened, rows=rows, widening=0, cost=0.02))


def model(rows, respond, seed):
    """Returns the model learned in `rows` rows of joint rounds; `respond(mask, noise)` is a row."""
    measuring = Measuring(Problem(COUNT, np.arange(40), 5, None, seed, continuous=True), 10_000)
    rng = np.random.default_rng(seed)

    def execute(plan):
        row_masks = plan.masks[plan.mask_index]
        responses = [respond(mask, rng.normal(0, 0.1)) for mask in row_masks]
        return Measurement(plan, np.array(responses))

    return searches.run(GeneratorSearch(rounds(measuring, rows)), execute).model


def beyond(model, first, second):
    """Returns the value of two components together minus the values of each alone."""
    sets = np.zeros((3, COUNT), dtype=bool)
    sets[0, [first, second]] = sets[1, first] = sets[2, second] = True
    pair, first_alone, second_alone = model.values(sets)
    return pair - first_alone - second_alone


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_believed_with_sets_enough(seed):
    """A pair that costs 0.4 and nothing alone is learned from 400 rows and not from 100."""

    def respond(mask, noise):
        return 0.8 - 0.4 * (mask[2] & mask[3]) + noise

    small, large = model(100, respond, seed), model(400, respond, seed)
    assert beyond(small, 2, 3) < 0.12 < beyond(large, 2, 3)
