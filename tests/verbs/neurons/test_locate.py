"""The neurons that the items of a data set share, on a shipped model."""

import pytest
from verbs.neurons.repeating import assert_refused, repeated
from verbs.neurons.small_runs import arguments_of

from broca import neurons


def test_selected_neurons_come_with_their_scores(small, tmp_path):
    """Selected neurons are sorted by score and exceed `sigma`; a second call repeats."""
    result = repeated(small, "locate", tmp_path)
    scores = [neuron.score for neuron in result.selected]
    assert scores
    assert scores == sorted(scores, reverse=True)
    assert all(neuron.sigmas > 3.0 for neuron in result.selected)
    assert sum(result.by_layer.values()) == len(result.selected)
    assert result.share_of_neurons == len(result.selected) / len(small.components)
    assert (result.task, result.items) == ("sorting", 6)


def test_the_strongest_are_selected_by_number(small):
    """`count` selects the first neurons of the same order."""
    arguments = {**arguments_of("locate"), "task": "sorting"}
    several, two = (neurons.locate(small, **arguments, count=count) for count in (5, 2))
    names = [[neuron.name for neuron in result.selected] for result in (several, two)]
    assert len(names[0]) == 5
    assert names[0][:2] == names[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "capitals", "scope": "head"}, "`scope`"),
        ({"task": "capitals", "method": "cln"}, "did you mean 'cnl'"),
        ({"task": "data:none", "fields": "x"}, "`fields`"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """Unknown scopes, methods, searches and fields are refused in one line."""
    assert_refused(small, "locate", wrong, message)
