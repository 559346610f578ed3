"""Divides a text into the windows over which lm-eval sums its log-likelihood.

Every token is predicted once. The first window follows the prefix token; later windows are as long
as the model allows, so that their tokens have as much context as possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from broca.tasks.items import Request


def rolling_requests(tokens: Sequence[int], *, prefix: int, max_length: int) -> tuple[Request, ...]:
    """Returns the requests whose log-likelihoods sum to that of the text.

    Args:
        tokens: Tokens of the text.
        prefix: Token before the first token.
        max_length: Maximum number of input tokens of the model.
    """
    requests: list[Request] = []
    start = 0
    while start < len(tokens):
        end = min(start + max_length, len(tokens))
        # context and continuation together are max_length + 1 tokens: the last is only predicted
        first = max(end - max_length - 1, 0) if start else 0
        context = tuple(tokens[first:start]) if start else (prefix,)
        requests.append(Request("loglikelihood", context, tuple(tokens[start:end])))
        start = end
    return tuple(requests)
