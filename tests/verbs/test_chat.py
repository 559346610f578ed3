"""`broca.chat` reads lines and answers each."""

from dataclasses import replace

import pytest
from results.samples import make_result

import broca
from broca.errors import BadInput, UnknownName

TELLING = {"max_new_tokens": 5}


def test_what_was_said_is_returned_and_written_piece_by_piece(small):
    """Exchanges are returned and written in pieces; commands work, and `/quit` ends the reading."""
    written = []
    lines = iter(["2 + 2 =", "/off L0H2", "/of", "2 + 2 =", "/quit", "never"])
    exchanges = broca.chat(
        small, lines, heads="L1H1", write=lambda *piece: written.append(piece), **TELLING
    )
    assert [exchange.components for exchange in exchanges] == [("L1H1",), ("L1H1", "L0H2")]
    assert exchanges[0].answers["intact"] == small.generate("2 + 2 =", max_new_tokens=5)
    with small.ablated("L1H1"):
        assert exchanges[0].answers["ablated"] == small.generate("2 + 2 =", max_new_tokens=5)
    pieces = "".join(text for voice, text in written if voice == "intact")
    assert pieces == "".join(exchange.answers["intact"] for exchange in exchanges)
    assert any(voice == "" and "/of is unknown" in text for voice, text in written)
    assert next(lines) == "never"


def test_a_localization_stands_for_its_model_and_selection(small):
    """A localization gives the model and its selection as a named set."""
    localization = make_result()
    result = replace(localization, model=replace(localization.model, name="reference-small"))
    started = []
    assert broca.chat(result, [], on_start=started.append, **TELLING) == ()
    assert started[0].sets == {"selection": result.selected}
    assert started[0].components == result.selected


def test_bad_input_is_one_line(small):
    """A chat without components, or with an unknown one, is refused before a line is read."""
    lines = iter(["never"])
    with pytest.raises(BadInput, match="no heads are named"):
        broca.chat(small, lines)
    with pytest.raises(UnknownName, match="no component 'L9H9'"):
        broca.chat(small, lines, heads="L9H9")
    assert next(lines) == "never"
