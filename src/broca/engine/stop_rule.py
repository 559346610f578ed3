"""Decides when a generation ends: end-of-sequence tokens, stop strings, the length limit."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from broca.models import GatedModel


class StopRule:
    """Decides the end of generations of a model.

    Stop strings are searched in decoded text with its special tokens, because they may span tokens
    in any way. As in lm-eval's `hf`, a stop string is searched in the last tokens: two more than
    its own. To decode rarely, a row is checked only after a token whose text contains the last
    character of one of its stop strings, because no other token can complete it.

    Args:
        tokenizer: The model's tokenizer.
        eos: Its end-of-sequence tokens.
    """

    def __init__(self, tokenizer: Any, eos: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._eos = frozenset(eos)
        self._may_complete = cache(self._tokens_that_may_complete)
        # the number of last tokens in which a stop string is searched
        self._tail = cache(lambda text: len(tokenizer.encode(text, add_special_tokens=False)) + 2)

    def ended(self, generated: Sequence[int], stop: tuple[str, ...], limit: int) -> bool:
        """Whether a generation ends with its newest token."""
        newest = generated[-1]
        if newest in self._eos or len(generated) >= limit:
            return True
        if newest not in self._may_complete(stop):
            return False
        decode = self._tokenizer.decode
        return any(
            text in decode(generated[-self._tail(text) :], skip_special_tokens=False)
            for text in stop
        )

    def text(self, generated: Sequence[int], stop: tuple[str, ...]) -> str:
        """Decodes a generation and truncates it at the first stop string, as lm-eval does."""
        text: str = self._tokenizer.decode(list(generated), skip_special_tokens=True)
        for end in stop:
            text = text.split(end)[0]
        return text

    def _tokens_that_may_complete(self, stop: tuple[str, ...]) -> frozenset[int]:
        last = {text[-1] for text in stop}
        every = sorted(self._tokenizer.get_vocab().values())  # numbers may be left out
        if any(ord(character) > 127 for character in last):
            return frozenset(every)  # the character may be spread over several byte tokens
        # not alone: decoders strip the space of a first token
        texts = self._tokenizer.batch_decode([[token, token] for token in every])
        return frozenset(
            token for token, text in zip(every, texts, strict=True) if last & set(text)
        )


def eos_tokens(model: GatedModel) -> list[int]:
    """Returns the end-of-sequence tokens that generation with transformers uses."""
    own = getattr(model.model.generation_config, "eos_token_id", None)
    configured = model.tokenizer.eos_token_id if own is None else own
    return [configured] if isinstance(configured, int) else list(configured or ())
