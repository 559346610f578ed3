"""The options of neurons are read."""

import pytest

from broca.errors import BadInput
from broca.options import DataOptions, RuleOptions, TrainingOptions


def test_columns_of_data_sets_are_read():
    """`fields` gives the column of each part of an example."""
    assert DataOptions(fields="prompt=question, answer = target").columns == {
        "prompt": "question",
        "answer": "target",
    }


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (DataOptions, {"fields": "prompt"}, "`fields` 'prompt' is not of the form"),
        (DataOptions, {"fields": "prompt= "}, "is not of the form"),
        (TrainingOptions, {"epochs": 0}, "`epochs` must be at least 1, not 0"),
        (TrainingOptions, {"lr": 0.0}, "`lr` must be above 0, not 0"),
        (RuleOptions, {"steps": 0}, "`steps`"),
    ],
)
def test_values_that_mean_nothing_are_refused(cls, values, message):
    """The message names the parameter in backticks."""
    with pytest.raises(BadInput, match=message):
        cls(**values)
