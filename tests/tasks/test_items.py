"""Items and requests: plain values, and what a request takes of a batch."""

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
    """The continuation, or as many tokens as may be generated."""
    assert request_.length == length


def test_equal_contents_are_equal_requests():
    """Requests and answers are keys: of one question asked twice, one is run."""
    one, other = (Request("loglikelihood", (1, 2), (3,)) for _ in range(2))
    assert {one: "a"}[other] == "a"
    assert one != Request("loglikelihood", (1,), (2, 3))
    assert LogLikelihood(-1.0, True) == LogLikelihood(-1.0, True)
    assert Generation("a", 1) != Generation("a", 2)
    with pytest.raises(AttributeError):
        one.context = ()
