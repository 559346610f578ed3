"""What sets keep alone, on simulated models with known heads."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from simulated import COMPONENTS, five_tasks, toy_verification

from broca.measurement import Plan
from broca.verification import Scope
from broca.verification.sufficiency import RANDOM_SETS, KeptMeasurer, kept_grid, sufficiency_items

NEEDED = [COMPONENTS.column(f"L{layer}H0") for layer in range(4)]


def kept(columns, model=None, rest=None):
    """Returns what a set keeps of the first of five tasks, in the order of the components."""
    model = model or five_tasks(items=40)
    trial = model.examiner().trial
    trial = trial.judged(dict.fromkeys(trial.names, 0.95))
    measurer = KeptMeasurer(
        trial, trial.places, COMPONENTS, {"zero": model.execute}, Scope(resamples=300, seed=1)
    )
    order = dict.fromkeys([*columns, *(rest or range(96))])
    return measurer.measured(columns, {"ranking": tuple(order)})


def by_hand(model, columns):
    """Returns the mean response to the first task's items while only some columns are intact."""
    mask = ~np.isin(np.arange(96), columns)[None]
    return model.execute(Plan.crossed(mask, np.arange(40))).responses.mean()


def test_grids_grow_like_fibonacci_numbers():
    """A grid has 0, 1, 2, 3, 5, 8, ..., the size of the set and all components."""
    assert kept_grid(4, 96) == (0, 1, 2, 3, 4, 5, 8, 13, 21, 34, 55, 89, 96)
    assert kept_grid(2, 2) == (0, 1, 2)


def test_curves_and_areas_equal_those_by_hand():
    """Kept performance and both areas equal a computation from single masks."""
    model, rest = five_tasks(items=40), list(reversed(range(96)))
    found = kept(NEEDED[:2], model, rest)
    order = [*NEEDED[:2], *(column for column in rest if column not in NEEDED[:2])]
    scores = np.array([by_hand(model, order[:k]) for k in found.grid])
    expected = (scores - scores[0]) / (scores[-1] - scores[0])
    curve = found.curves[0]
    assert [point.value for point in curve.kept] == pytest.approx(expected)
    shares = np.array(found.grid) / 96
    area = trapezoid(expected, shares)
    assert curve.area.value == pytest.approx(area)
    assert curve.distance.value == pytest.approx(1 - area)  # no point is above 1
    assert curve.area.low < area < curve.area.high


def test_a_set_that_has_all_the_task_needs_is_sufficient():
    """The four needed heads keep all of their task and nothing of the others; each is needed."""
    found = kept(NEEDED)
    (alone,) = found.sets
    assert (alone.sufficient, alone.kept.value, alone.others.value) == (True, 1, 0)
    assert len(alone.random) == RANDOM_SETS
    assert 0.85 < alone.kept.low < 1  # 40 equal items leave a few per cent open
    assert 0.04 < alone.others.high < 0.1  # as they do of four other tasks together
    assert found.least(found.curves[0]) == 4
    for curve in found.curves:  # as far as of the curve, and by definition all keep all
        assert curve.area.high - curve.area.low > 0.08
        assert curve.distance.low >= 0
        assert curve.kept[-1].low > 0.95
    assert [line.head for line in found.members] == ["L0H0", "L1H0", "L2H0", "L3H0"]
    for line, column in zip(found.members, NEEDED, strict=True):
        model = five_tasks(items=40)
        others = [other for other in NEEDED if other != column]
        scores = [by_hand(model, columns) for columns in (NEEDED, others, [])]
        assert line.lost.value == pytest.approx((scores[0] - scores[1]) / (scores[0] - scores[2]))
        assert line.p < 0.05


def test_a_verification_says_in_which_ways_a_set_is_claimed():
    """A specific set that keeps the task alone is both, a part of it is not; curves are drawn."""
    verification = toy_verification()
    assert verification.ways == ""
    both = replace(verification, enough=kept(NEEDED))
    assert both.ways == "necessary and sufficient at k = 4"
    page = both.page()
    assert "What the set does alone" in page
    assert 'id="figure-kept_' in page
    part = replace(verification, enough=kept(NEEDED[:3]))
    assert (part.ways, part.lines[-1].split(":")[0]) == ("necessary", "necessary")
    unclear = replace(verification, verdict=None, enough=kept(NEEDED))
    assert unclear.ways == ""
    few = replace(part, verdict=replace(part.verdict, label="inconclusive"))
    assert few.ways == "not shown to be necessary or sufficient"


def test_a_task_that_loses_nothing_tells_nothing():
    """Where a task survives without all components the answer is a reason."""
    model = five_tasks(items=40)
    model.heads["adding"] = {}
    found = kept(NEEDED, model)
    assert found.sets == ()
    assert "may lose nothing" in found.says(("L0H0",), "adding")


def test_rows_are_bounded():
    """The count of rows holds, items shrink with the rows, and too few give no items."""
    model = five_tasks(items=40)
    trial = model.examiner().trial
    places, most = sufficiency_items(trial, 3500, COMPONENTS, NEEDED, kinds=1)
    assert 8 < len(places["adding"]) < 40
    assert 3000 < most <= 3500
    places, most = sufficiency_items(trial, 10_000, COMPONENTS, NEEDED, kinds=1)
    assert len(places["adding"]) == 40
    kept(NEEDED, model)
    assert model.rows <= most + 4 * 13 * 30  # here the others have all their items
    places, fewest = sufficiency_items(trial, 500, COMPONENTS, NEEDED, kinds=1)
    assert places is None
    assert fewest > 500
