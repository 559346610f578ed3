"""Agreement of the neurons of one content over its wordings, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_wordings_of_one_content_are_compared_with_chance(small, tmp_path):
    """Every relation of pairs has shares between 0 and 1; a second call repeats."""
    result = repeated(small, "fidelity", tmp_path).result
    assert (result.questions, result.contents, result.set_size) == ("capitals", 3, 4.0)
    assert len(result.agreements) >= 2
    for line in result.agreements:
        assert 0 <= line.iou.value <= line.of_larger.value <= 1
        assert line.of_larger.low <= line.of_larger.value <= line.of_larger.high
        assert 0 <= line.random_of_larger <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "sorting"}, "no paraphrases"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """A task without paraphrases is refused in one line."""
    assert_refused(small, "fidelity", wrong, message)
