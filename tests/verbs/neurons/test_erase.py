"""The cost of ablating located neurons, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_methods_are_compared_on_the_task_and_the_others(small, tmp_path):
    """Methods select equally many neurons; the excess is the drop beyond that of random sets."""
    lines = repeated(small, "erase", tmp_path).result
    assert [(line.questions, line.method, line.neurons) for line in lines] == [
        (name, method, 4) for name in ("sorting", "capitals") for method in ("cnl", "gradient")
    ]
    for line in lines:
        assert line.drop.value == pytest.approx(line.before.value - line.after.value)
        assert line.random_drop.value == pytest.approx(sum(line.random_drops) / 2)
        assert line.excess.value == pytest.approx(line.drop.value - line.random_drop.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "capitals", "methods": "x"}, "`method` 'x'"),
        ({"task": "capitals", "matching": "x"}, "`matching`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """An unknown method and an unknown matching are refused in one line."""
    assert_refused(small, "erase", wrong, message)
