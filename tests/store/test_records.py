"""The problems of searches are written and read back."""

import numpy as np

from broca.results.files import plain
from broca.searches import OtherTask, Problem
from broca.searches.atlas import AtlasProblem
from broca.store import restored


def test_problems_survive_json():
    """Arrays have their types, also without entries; other tasks and mappings are as they were."""
    others = (OtherTask("other", np.array([4, 5]), np.zeros(0, dtype=np.intp)),)
    for problem in (
        Problem(4, np.array([3, 1]), 2, None, 7, others=others, item_tokens=0.1),
        AtlasProblem(4, {"b": np.array([1]), "a": np.array([0])}, 800, 3),
    ):
        assert repr(restored(plain(problem), type(problem))) == repr(problem)
