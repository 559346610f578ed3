"""The end of a generation, and its text."""

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from broca.engine.stop_rule import StopRule
from broca.testing import tiny_tokenizer


@pytest.fixture(scope="module")
def rule():
    """The rule for a byte-level tokenizer whose end of sequence is token 1."""
    return StopRule(tiny_tokenizer(), [1])


def end_of(rule, text, stop, limit=99):
    """Feeds a text token by token and returns the text up to the token that ended it."""
    tokens = tiny_tokenizer().encode(text)
    for length in range(1, len(tokens) + 1):
        if rule.ended(tokens[:length], stop, limit):
            return tiny_tokenizer().decode(tokens[:length])
    return None


@pytest.mark.parametrize(
    ("text", "stop", "read"),
    [
        ("one\ntwo", ("\n",), "one\n"),
        ("so Question: x", ("Question:",), "so Question:"),
        ("Questio Question:", ("Question:", "</s>"), "Questio Question:"),
        ("a b", ("c",), None),
        ("ab</s>c", ("</s>",), "ab</s>"),
        ("prix: 5 € et", ("€",), "prix: 5 €"),
    ],
)
def test_stop_string_is_found_however_tokens_cut_it(rule, text, stop, read):
    """The rule ends at the token that completes a stop string, not before."""
    assert end_of(rule, text, stop) == read


def test_special_tokens_are_stop_strings():
    """A stop string that is a special token ends a generation, though its text leaves it out."""
    tokenizer = tiny_tokenizer()
    rule = StopRule(tokenizer, [])
    tokens = tokenizer.encode("one")
    assert not rule.ended(tokens, ("<eos>",), 99)
    assert rule.ended([*tokens, 1], ("<eos>",), 99)
    assert rule.text([*tokens, 1], ("<eos>",)) == "one"


def test_stop_string_may_end_in_a_space_that_decoders_strip():
    """A token that is a space, which is no text where it is decoded alone, completes a string."""
    vocabulary = {"<eos>": 0, "\u2581": 1, "a": 2, "b": 3}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.decoder = decoders.Metaspace()
    rule = StopRule(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>"), [0])
    assert [rule.ended([2, 3, 1][:length], ("b ",), 99) for length in (1, 2, 3)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("tokens", "limit", "ends"),
    [([40, 41, 1], 99, True), ([40, 41], 99, False), ([40, 41, 42], 3, True), ([40, 41], 3, False)],
)
def test_an_end_of_sequence_or_the_limit_ends(rule, tokens, limit, ends):
    """Without stop strings, the end-of-sequence token and the limit alone end a generation."""
    assert rule.ended(tokens, (), limit) == ends


def test_text_is_cut_at_the_first_stop_string(rule):
    """The text ends before the earliest stop string, as in lm-evaluation-harness."""
    tokens = tiny_tokenizer().encode("one two three")
    assert rule.text(tokens, ("three", " two")) == "one"
    assert rule.text([*tokens, 1], ()) == "one two three"
