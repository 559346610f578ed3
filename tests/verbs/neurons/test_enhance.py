"""What training located neurons gains, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_every_arm_is_trained_and_measured(small, tmp_path):
    """Three sets of weights beside the model as it was, as shares of it; the run repeats."""
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
    """What, why, and what to do."""
    assert_refused(small, "enhance", wrong, message)
