"""Common neurons of pairs of items that share a part, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated


def test_pairs_are_grouped_by_what_they_share(small, tmp_path):
    """Each relation has pairs, with shares between 0 and 1; a second call repeats."""
    lines = repeated(small, "decouple", tmp_path).result
    assert len({line.relation for line in lines}) == len(lines) >= 2
    for line in lines:
        assert line.pairs > 0
        assert 0 <= line.iou.value <= line.of_larger.value <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pairs": "nowhere.jsonl"}, "`pairs`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """A missing file of pairs is refused in one line."""
    assert_refused(small, "decouple", wrong, message)
