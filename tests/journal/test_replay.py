"""Replay answers a run's plans from its journal in the order in which they were asked."""

import numpy as np
import pytest
from journals import NAMES, filled

from broca.errors import NotInJournal
from broca.journal import Journal, Replay
from broca.measurement import Plan


@pytest.fixture
def recorded():
    """A journal with two plans of a run, its run, its masks and its responses."""
    masks = np.random.default_rng(0).random((12, 9)) < 0.5  # the masks that `filled` writes
    with Journal.in_memory() as journal:
        run, condition, ids, items, responses, _ = filled(journal)
        for number, rows in enumerate((slice(0, 8), slice(8, 12))):
            journal.add_plan(
                run, number, role="search", condition=condition, masks=ids[rows], items=items[rows]
            )
        yield journal, run, masks, responses


def plan(masks, first, last):
    """Returns a plan of one row for each mask, on the item at the same position."""
    rows = np.arange(first, last)
    return Plan(masks[first:last], rows - first, rows)


def test_plans_are_answered_one_after_the_other(recorded):
    """Plans get the recorded responses in order; a plan after the last one is refused."""
    journal, run, masks, responses = recorded
    replay = Replay(journal, run, components=NAMES)
    np.testing.assert_array_equal(replay.run(plan(masks, 0, 8)).responses, responses[:8])
    np.testing.assert_array_equal(replay.run(plan(masks, 8, 12)).responses, responses[8:])
    with pytest.raises(NotInJournal, match="ended after 2 plans"):
        replay.run(plan(masks, 8, 12))


def test_a_plan_out_of_order_is_refused(recorded):
    """A plan with other masks than those recorded next is refused."""
    journal, run, masks, _ = recorded
    with pytest.raises(NotInJournal, match="plan 0 asked for other masks"):
        Replay(journal, run, components=NAMES).run(plan(masks, 8, 12))


def test_a_position_stands_for_one_item_throughout(recorded):
    """A bank may be numbered otherwise, but a position stands for one item in all plans."""
    journal, run, masks, responses = recorded
    replay = Replay(journal, run, components=NAMES)
    moved = plan(masks, 0, 8)
    first = replay.run(Plan(moved.masks, moved.mask_index, moved.item_index + 50))
    np.testing.assert_array_equal(first.responses, responses[:8])
    used = plan(masks, 8, 12)
    with pytest.raises(NotInJournal, match="plan 1 asked for other items"):
        replay.run(Plan(used.masks, used.mask_index, np.array([50, 61, 62, 63])))


def test_rows_that_were_not_measured_are_counted(recorded):
    """A plan with rows that were not measured is refused with their number."""
    journal, run, masks, _ = recorded
    journal._connection.execute("DELETE FROM rows WHERE item IN (2, 5)")
    with pytest.raises(NotInJournal, match="2 of 8 rows were not measured"):
        Replay(journal, run, components=NAMES).run(plan(masks, 0, 8))


def test_another_role_has_other_plans(recorded):
    """The plans of a search are not replayed for another role."""
    journal, run, masks, _ = recorded
    with pytest.raises(NotInJournal, match="ended after 0 plans"):
        Replay(journal, run, components=NAMES, role="scores").run(plan(masks, 0, 8))
