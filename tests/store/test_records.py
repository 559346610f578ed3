"""What identifies rows, and the problems of searches, are written and read back."""

import json
from dataclasses import replace

import numpy as np
from journals import CHANGES, CONDITION

from broca.searches import Problem
from broca.searches.atlas import AtlasProblem
from broca.searches.problem import OtherTask
from broca.store import Condition, restored, written


def test_conditions_are_read_back():
    """The text of a condition holds all of it."""
    for name, value in CHANGES.items():
        changed = replace(CONDITION, **{name: value})
        assert Condition.read(changed.text()) == changed


def test_problems_survive_json():
    """Arrays have their types, also without entries; other tasks and mappings are as they were."""
    others = (OtherTask("other", np.array([4, 5]), np.zeros(0, dtype=np.intp)),)
    problem = Problem(4, np.array([3, 1]), 2, None, 7, others=others, item_tokens=0.1)
    back = restored(json.loads(json.dumps(written(problem))), Problem)
    assert (back.components, back.k, back.rows, back.seed, back.item_tokens) == (4, 2, None, 7, 0.1)
    for before, after in (
        (problem.items, back.items), (problem.confirm, back.confirm),
        (others[0].items, back.others[0].items), (others[0].confirm, back.others[0].confirm),
    ):  # fmt: skip
        np.testing.assert_array_equal(after, before)
        assert after.dtype == before.dtype
    atlas = AtlasProblem(4, {"b": np.array([1]), "a": np.array([0])}, 800, 3)
    back = restored(json.loads(json.dumps(written(atlas))), AtlasProblem)
    assert list(back.tasks) == ["b", "a"]
    assert back.tasks["b"].tolist() == [1]
