"""Overlap of neurons between halves of data sets, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_halves_of_one_data_set_are_compared_with_others(small, tmp_path):
    """Both relations have means between 0 and 1; a second call repeats."""
    result = repeated(small, "overlap", tmp_path).result
    assert len(result.summary) >= 2
    for measures in result.summary.values():
        assert all(0 <= value <= 1 for value in measures.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": ""}, "`tasks`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """An empty list of tasks is refused in one line."""
    assert_refused(small, "overlap", wrong, message)
