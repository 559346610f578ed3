"""The gain from training located neurons, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_every_arm_is_trained_and_measured(small, tmp_path):
    """Three trained sets of weights stand beside the untrained model; a second call repeats."""
    arms = {line.arm: line for line in repeated(small, "enhance", tmp_path).result}
    untuned = arms.pop("untuned")
    assert (untuned.neurons, untuned.share_of_parameters) == (0, 0)
    assert len(arms) == 3
    assert all(0 < line.share_of_parameters <= 1 for line in arms.values())
    for line in arms.values():
        assert 0 <= line.score.value <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "capitals", "lr": 0}, "`lr`"),
        ({"task": "capitals", "without": "x"}, "`without`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """A learning rate of 0 and an unknown value of `without` are refused in one line."""
    assert_refused(small, "enhance", wrong, message)
