"""The result of an atlas."""

import numpy as np
import pytest
from capabilities import LEARNED

import broca


@pytest.fixture(scope="module")
def atlas(planted):
    """One joint run over the six capabilities that `planted` has learned."""
    return broca.atlas(planted, tasks=list(LEARNED), rows=3000, items=50)


def test_cells_lie_in_their_intervals_and_budget_is_kept(atlas):
    """Every effect lies between its bounds; the number of rows is the budget."""
    assert np.all(np.array(atlas.low) <= np.array(atlas.effects))
    assert np.all(np.array(atlas.effects) <= np.array(atlas.high))
    assert 3000 - len(LEARNED) < atlas.cost.rows <= 3000
    assert atlas.response == "probability"
    assert not atlas.shrunk
