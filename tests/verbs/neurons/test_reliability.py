"""The effect of scaling located neurons on the answer, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_every_factor_is_measured_beside_random_sets(small, tmp_path):
    """Default factors are 0 and 2; the excess is located minus random; a second call repeats."""
    result = repeated(small, "reliability", tmp_path).result
    assert [line.factor for line in result.moved] == [0.0, 2.0]
    for line in result.moved:
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
    """A factor that is not a number and 0 draws are refused in one line."""
    assert_refused(small, "reliability", wrong, message)
