"""The end of a generation, and its text."""

import pytest
from tiny import tiny_tokenizer
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from broca.engine.stop_rule import StopRule

TOKENIZER = tiny_tokenizer()
"""A byte-level tokenizer whose end of sequence is token 1."""


@pytest.mark.parametrize(
    ("text", "stop", "read"),
    [
        ("one\ntwo", ("\n",), "one\n"), ("so Question: x", ("Question:",), "so Question:"),
        ("Questio Question:", ("Question:", "</s>"), "Questio Question:"), ("a b", ("c",), None),
        ("ab</s>c", ("</s>",), "ab</s>"), ("prix: 5 € et", ("€",), "prix: 5 €"),
        ("ab<eos>c", ("<eos>",), "ab<eos>"),
    ],
)  # fmt: skip
def test_stop_string_is_found_however_tokens_cut_it(text, stop, read):
    """A generation ends at the token that completes a stop string, also a special token."""
    rule, tokens = StopRule(TOKENIZER, []), TOKENIZER.encode(text)
    ended = [n for n in range(1, len(tokens) + 1) if rule.ended(tokens[:n], stop, 99)]
    assert (TOKENIZER.decode(tokens[: ended[0]]) if ended else None) == read


def test_stop_string_may_end_in_a_space_that_decoders_strip():
    """A space that is no text where it is decoded alone completes a string, whatever its number."""
    backend = Tokenizer(models.BPE(vocab={"<eos>": 0, "\u2581": 9, "a": 2, "b": 3}, merges=[]))
    backend.decoder = decoders.Metaspace()
    rule = StopRule(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>"), [0])
    assert [rule.ended([2, 3, 9][:length], ("b ",), 99) for length in (1, 2, 3)] == [0, 0, 1]


def test_an_end_of_sequence_or_the_limit_ends():
    """Without stop strings, the end-of-sequence token and the limit alone end a generation."""
    asked = ([40, 41, 1], (), 99), ([40, 41], (), 99), ([40, 41, 42], (), 3), ([40, 41], (), 3)
    assert [StopRule(TOKENIZER, [1]).ended(*one) for one in asked] == [True, False, True, False]


def test_text_is_cut_at_the_first_stop_string():
    """The text ends before the earliest stop string, as in lm-evaluation-harness."""
    rule, tokens = StopRule(TOKENIZER, [1]), [*TOKENIZER.encode("one two three"), 1]
    texts = [rule.text(tokens, stop) for stop in (("three", " two"), ("<eos>",), ())]
    assert texts == ["one", "one two three", "one two three"]
