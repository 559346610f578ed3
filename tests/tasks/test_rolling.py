"""Windows of a long text, against lm-eval's."""

import pytest
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from broca.tasks.rolling import rolling_requests


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 17, 40])
@pytest.mark.parametrize("longest", [1, 2, 8])
def test_windows_are_those_of_lm_eval(length, longest):
    """Contexts and continuations equal lm-eval's for texts around the length of the context."""
    tokens = list(range(100, 100 + length))
    windows = get_rolling_token_windows(tokens, prefix_token=5, max_seq_len=longest, context_len=1)
    expected = [make_disjoint_window(window) for window in windows]
    requests = rolling_requests(tokens, prefix=5, max_length=longest)
    assert [(list(r.context), list(r.continuation)) for r in requests] == expected


def test_every_token_is_predicted_once():
    """Windows predict every token once, and the longest fills the context exactly."""
    requests = rolling_requests(range(30), prefix=99, max_length=8)
    assert [token for request in requests for token in request.continuation] == list(range(30))
    assert max(request.length for request in requests) == 8 + 1
