"""Learned gates, trained under pushes in both directions."""

import pytest
from searches.test_gradient import Smooth

from broca.errors import BadInput


def mixed(gates):
    """Components 2 and 5 are needed, 7 interferes, and all others have no effect."""
    return gates[2] + 0.6 * gates[5] - 0.5 * gates[7]


def test_tells_needed_harmful_and_irrelevant_apart():
    """Effects have the size of the slopes, and those of irrelevant components are nearly zero."""
    ranking = Smooth(mixed, 10).solve("learned-gates")
    assert ranking.groups == {"facilitating": (2, 5), "interfering": (7,)}
    assert ranking.selected == (2, 5)
    assert ranking.effects[[2, 5, 7]] == pytest.approx([-1, -0.6, 0.5], rel=0.05)
    assert abs(ranking.effects[[0, 1, 3, 4, 6, 8, 9]]).max() < 1e-3


def test_finds_factors_of_which_each_is_needed():
    """Both factors of a product are found although it has no slope without one of them."""
    ranking = Smooth(lambda gates: gates[1] * gates[3], 8).solve("learned-gates")
    assert set(ranking.selected) == {1, 3}


def test_rows_are_counted_threefold():
    """Two trainings and a last look at the slopes cost three times their rows."""
    smooth = Smooth(mixed, 10)
    smooth.solve("learned-gates", steps=8, batch=5)
    assert smooth.rows == 3 * (2 * 8 + 1) * 5


@pytest.mark.parametrize("rows", [51, 60, 300, 999])
def test_a_budget_shortens_the_training(rows):
    """The budget is kept, and most of it is used."""
    smooth = Smooth(mixed, 10)
    smooth.solve("learned-gates", rows=rows)
    assert 0.6 * rows < smooth.rows <= rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"push": 0}, "push"),
        ({"steps": 2}, "8 steps or more"),
        ({"rows": 50}, "set `rows` to 51 or more"),
    ],
)
def test_bad_settings_are_refused(options, message):
    """The message names the option and its permitted values."""
    with pytest.raises(BadInput, match=message):
        Smooth(mixed, 10).solve("learned-gates", **options)
