"""Items and requests as plain values, and the length of a request."""

import pytest

from broca.tasks import Generation, LogLikelihood, Request


@pytest.mark.parametrize(
    ("request_", "length"),
    [
        (Request("loglikelihood", (1, 2, 3), (4, 5)), 5),
        (Request("generate_until", (1, 2, 3), max_new_tokens=7), 10),
        (Request("loglikelihood", (), (4,)), 1),
    ],
)
def test_a_request_takes_its_prompt_and_what_follows(request_, length):
    """A request's length is its prompt and its continuation, or its maximum of new tokens."""
    assert request_.length == length


def test_equal_contents_are_equal_requests():
    """Requests and answers are equal by value, hashable and frozen."""
    first, second = (Request("loglikelihood", (1, 2), (3,)) for _ in range(2))
    assert {first: "a"}[second] == "a"
    assert first != Request("loglikelihood", (1,), (2, 3))
    assert LogLikelihood(-1.0, True) == LogLikelihood(-1.0, True)
    assert Generation("a", 1) != Generation("a", 2)
    with pytest.raises(AttributeError):
        first.context = ()
