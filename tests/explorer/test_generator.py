"""Answers of the live page: a question after another, its rows in one batch."""

from contextlib import closing

import pytest
import torch

from broca.errors import BadInput
from broca.explorer.generator import Generator

PROMPTS = ("sort q d a z =", "sort b c a =", "two plus three =")


@pytest.fixture(scope="module")
def ask(reference):
    """Returns a function that asks what the intact and the ablated model answer to a prompt."""

    def asked(prompt, off=(), scale=0.0, *, longest):
        intact = torch.ones(len(reference.components))
        changed = intact.clone()
        changed[reference.components.columns(off)] = scale
        tokens = reference.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        return generator.ask(tokens, (intact, changed), longest=longest)

    with closing(Generator(reference)) as generator:
        yield asked


def answers(stream):
    """Returns the texts of both rows of a stream, and its events."""
    events = list(stream)
    assert not [event for event in events if "error" in event]
    texts = ["".join(e.get("text", "") for e in events if e["row"] == row) for row in (0, 1)]
    return texts, events


@pytest.mark.parametrize("scale", [0.0, 0.5])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_both_answers_are_those_of_transformers(ask, reference, prompt, scale):
    """The two rows of a question are the greedy texts of the intact and of the ablated model."""
    off = ["L0H3", "L0H8", "L1H2"]
    texts, _ = answers(ask(prompt, off, scale, longest=12))
    intact = reference.copy()
    assert texts[0] == intact.generate(prompt, max_new_tokens=12)
    with intact.ablated(off, scale):
        assert texts[1] == intact.generate(prompt, max_new_tokens=12)


def test_tabs_are_answered_in_turn(ask):
    """Tabs with different sets may ask at once, and each gets the answer it gets alone."""
    questions = [(prompt, [f"L0H{n}"]) for n, prompt in enumerate(PROMPTS * 2)]
    alone = [answers(ask(*question, longest=16))[0] for question in questions]
    streams = [ask(*question, longest=16) for question in questions]
    assert [answers(stream)[0] for stream in streams] == alone


def test_next_tokens_come_with_their_probabilities(ask, reference):
    """The most probable next tokens come first, with the model's probabilities."""
    _, events = answers(ask(PROMPTS[0], longest=1))
    first = events[0]["likely"]
    tokens = reference.tokenizer.encode(PROMPTS[0])
    with torch.no_grad(), reference.in_use():
        logits = reference.copy().model(torch.tensor([tokens])).logits[0, -1].float()
    values, chosen = logits.softmax(-1).topk(len(first))
    assert [p for _, p in first] == pytest.approx(values.tolist(), abs=2e-5)
    assert [text for text, _ in first] == [reference.tokenizer.decode([int(t)]) for t in chosen]
    assert events[0]["token"] == chosen[0]


def test_every_row_says_why_it_ended(ask):
    """A row ends with "length" at the limit and with "stop" at the end of the sequence."""
    for longest, reason in ((2, "length"), (64, "stop")):
        _, events = answers(ask(PROMPTS[0], longest=longest))
        assert sorted((e["row"], e["end"]) for e in events if "end" in e) == [
            (0, reason), (1, reason),
        ]  # fmt: skip


def test_bad_and_cancelled_questions_leave_the_others(ask):
    """A question that fails says so, a cancelled one ends, and later ones are answered."""
    bad, gone = ask([10**9], longest=2), ask(PROMPTS[0], longest=200)
    gone.cancelled = True
    assert any("error" in event for event in bad)
    assert len([event for event in gone if "end" in event]) == 2
    texts, _ = answers(ask(PROMPTS[0], longest=4))
    assert texts[0]


def test_questions_are_bounded(ask, monkeypatch):
    """A question beyond the bound is refused, and so are many; later ones are answered."""
    monkeypatch.setattr("broca.explorer.generator.TOKENS", 500)
    with pytest.raises(BadInput, match="has 250 tokens, and the page takes at most 249"):
        ask([1] * 250, longest=1)
    monkeypatch.setattr("broca.explorer.generator.WAITING", 1)
    streams = [ask(PROMPTS[0], longest=200)]
    with pytest.raises(BadInput, match="is busy"):
        streams += [ask(PROMPTS[0], longest=10) for _ in range(3)]
    assert all(len(list(stream)) > 2 for stream in streams)
    assert answers(ask(PROMPTS[0], longest=10))[0][0]


def test_closing_ends_what_is_written(reference):
    """Closing ends every stream, leaves the model intact, and refuses what is asked later."""
    text_generator = Generator(reference)
    intact = torch.ones(len(reference.components))
    stream = text_generator.ask([1, 2, 3], (intact, intact), longest=200)
    text_generator.close()
    assert list(stream)[-1].keys() >= {"row", "end"}
    reference.require_intact()
    with pytest.raises(BadInput, match="the page is closing"):
        text_generator.ask([1, 2, 3], (intact, intact))
