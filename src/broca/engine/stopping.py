"""Decides when a generation ends: end-of-sequence tokens, stop strings, the length limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any


class StopRule:
    """Decides the end of generations of a model.

    Stop strings are searched in decoded text, because they may span tokens in any way. To decode
    rarely, a row is checked only after a token whose text contains the last character of one of its
    stop strings, because no other token can complete it.

    Args:
        tokenizer: The model's tokenizer.
        eos: Its end-of-sequence tokens.
    """

    def __init__(self, tokenizer: Any, eos: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._eos = frozenset(eos)
        self._may_complete = cache(self._tokens_that_may_complete)
        self._longest_tail = cache(self._tail_of)

    def ended(self, generated: Sequence[int], stop: tuple[str, ...], limit: int) -> bool:
        """Whether a generation ends with its newest token."""
        newest = generated[-1]
        if newest in self._eos or len(generated) >= limit:
            return True
        if newest not in self._may_complete(stop):
            return False
        tail = self._tokenizer.decode(
            generated[-self._longest_tail(stop) :], skip_special_tokens=True
        )
        return any(text in tail for text in stop)

    def text(self, generated: Sequence[int], stop: tuple[str, ...]) -> str:
        """Decodes a generation and truncates it at the first stop string, as lm-eval does."""
        text: str = self._tokenizer.decode(list(generated), skip_special_tokens=True)
        for end in stop:
            text = text.split(end)[0]
        return text

    def _tokens_that_may_complete(self, stop: tuple[str, ...]) -> frozenset[int]:
        last = {text[-1] for text in stop}
        every = range(len(self._tokenizer))
        if any(ord(character) > 127 for character in last):
            return frozenset(every)  # the character may be spread over several byte tokens
        texts = self._tokenizer.batch_decode([[token] for token in every])
        return frozenset(
            token for token, text in zip(every, texts, strict=True) if last & set(text)
        )

    def _tail_of(self, stop: tuple[str, ...]) -> int:
        """Returns the number of tokens to decode: a token has at least one byte."""
        return max((len(text.encode()) for text in stop), default=0) + 4
