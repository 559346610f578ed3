"""Does scaling located neurons move the answer, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_every_factor_is_measured_beside_random_sets(small, tmp_path):
    """Ablated and doubled by default; the excess is the difference; the run repeats."""
    found = repeated(small, "reliability", tmp_path).result
    assert [line.factor for line in found.moved] == [0.0, 2.0]
    for line in found.moved:
        assert line.excess.value == pytest.approx(line.located.value - line.random.value)
        assert line.unrelated is not None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "capitals", "factors": "a"}, "`factors`"),
        ({"task": "capitals", "draws": 0}, "`draws`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """What, why, and what to do."""
    assert_refused(small, "reliability", wrong, message)
