"""Objects of searches are encoded as JSON and decoded."""

import json
from dataclasses import asdict

import numpy as np
from journals import CONDITION

from broca.searches import Problem
from broca.store.encoding import decoded, encoded


def test_problems_survive_json():
    """Arrays with their types, tuples and mappings are the same after JSON."""
    problem = Problem(4, np.array([3, 1]), 2, None, 7)
    back = Problem(**decoded(json.loads(json.dumps(encoded(problem)))))
    np.testing.assert_array_equal(back.items, problem.items)
    assert back.items.dtype == problem.items.dtype
    assert (back.components, back.k, back.rows, back.seed) == (4, 2, None, 7)
    value = {"a": (1, (2.5, None)), 3: [True]}
    assert decoded(json.loads(json.dumps(encoded(value)))) == {"a": (1, (2.5, None)), 3: (True,)}


def test_a_dataclass_comes_back_as_its_fields():
    """A dataclass becomes a mapping of its fields; mappings may have tuples and None as keys."""
    value = {("a", 1): [CONDITION, np.float32(0.5), np.int64(2)], None: np.array([[True], [False]])}
    back = decoded(json.loads(json.dumps(encoded(value))))
    fields, half, two = back[("a", 1)]
    assert fields == asdict(CONDITION)
    assert (half, two) == (0.5, 2)
    assert back[None].dtype == bool
    assert back[None].tolist() == [[True], [False]]


def test_arrays_without_rows_keep_their_type():
    """An empty array keeps its type and shape."""
    back = decoded(json.loads(json.dumps(encoded(np.array([], dtype=np.int32)))))
    assert (back.dtype, back.shape) == (np.int32, (0,))
