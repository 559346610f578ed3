"""Grades of repetitions that count as reproduced."""

import pytest

from broca.results.runs import Repetition


@pytest.mark.parametrize(
    ("grade", "passed"),
    [
        ("identical", True),
        ("equal within the tolerance", True),
        ("same selection", False),
        ("different", False),
    ],
)
def test_equal_numbers_are_a_reproduction(grade, passed):
    """The same selection with other effects is not reproduced."""
    assert Repetition(grade, ("a detail",)).passed is passed
