"""Per-item responses of several tasks."""

import numpy as np
import pytest
from simulated import SimulatedTask, five_tasks

from broca.measurement import Measurement
from broca.verification import Trial, roles


def test_smaller_shares_the_items_among_the_others():
    """Tasks of the skill get the full number of items; the others share it, at least five each."""
    trial = five_tasks().examiner(same_skill=["sorting"]).trial
    smaller = trial.smaller(30)
    assert {name: len(places) for name, places in smaller.items()} == {
        "adding": 30, "sorting": 30, "rhyming": 10, "facts": 10, "code": 10,
    }  # fmt: skip
    assert all(set(smaller[name]) <= set(trial.places[name]) for name in smaller)
    assert len(trial.smaller(6)["code"]) == 5
    assert len(trial.smaller(1000)["adding"]) == 80


def test_responses_go_to_their_masks_and_tasks():
    """Responses are returned as a table `(masks, items)` for every task."""
    trial = five_tasks().examiner().trial
    masks = np.eye(96, dtype=bool)[:3]
    places = {"adding": np.array([4, 6]), "code": np.array([330])}
    responses = trial.responses(
        lambda plan: Measurement(plan, plan.mask_index * 1000.0 + plan.item_index), masks, places
    )
    np.testing.assert_array_equal(responses["adding"], [[4, 6], [1004, 1006], [2004, 2006]])
    np.testing.assert_array_equal(responses["code"], [[330], [1330], [2330]])


def test_scores_of_metrics_where_lower_is_better_are_turned_back():
    """Negated responses give the score with its sign; a mean has no aggregation function."""
    trial = Trial("a", (), (), {"a": SimulatedTask(higher_is_better=False)}, {"a": np.arange(2)})
    values = np.array([-3.0, -5.0])
    assert trial.score("a", values) == pytest.approx(4.0)
    assert trial.aggregation("a", values) is None


def test_roles_follow_capability_and_the_user():
    """A task has the same skill by its capability or because the caller names it."""

    class Task:
        def __init__(self, capability):
            self.capability = capability

    tasks = {"a": Task("x"), "b": Task("x"), "c": Task("y"), "d": Task("z")}
    assert roles("a", tasks) == (("b",), ("c", "d"))
    assert roles("a", tasks, ["d"]) == (("b", "d"), ("c",))
