"""Neurons located on one data set are changed and another is measured, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_every_pair_of_data_sets_is_measured(small, tmp_path):
    """Every data set is measured with neurons located on each; a second call repeats."""
    lines = repeated(small, "cross", tmp_path).result
    assert {(line.located_on, line.measured_on) for line in lines} == {
        (located_on, measured_on)
        for located_on in ("sorting", "capitals")
        for measured_on in ("sorting", "capitals")
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": "capitals"}, "two data sets"),
        ({"action": "freeze"}, "`action`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """A single data set and an unknown action are refused in one line."""
    assert_refused(small, "cross", wrong, message)
