"""Answers of the live page: many tabs share one batch, and each answers as if it were alone."""

import threading

import pytest
import torch

from broca.explorer.generator import Generator

PROMPTS = ("sort q d a z =", "sort b c a =", "two plus three =")


@pytest.fixture(scope="module")
def generator(reference):
    """A generator on the shipped model."""
    text_generator = Generator(reference)
    yield text_generator
    text_generator.close()


def gates(model, off, scale=0.0):
    """Returns intact gates, and gates with some components scaled."""
    intact = torch.ones(len(model.components))
    changed = intact.clone()
    changed[model.components.columns(off)] = scale
    return intact, changed


def answers(stream):
    """Returns the texts of both rows of a stream, and its events."""
    events = list(stream)
    assert not [event for event in events if "error" in event]
    texts = ["".join(e.get("text", "") for e in events if e["row"] == row) for row in (0, 1)]
    return texts, events


@pytest.mark.parametrize("scale", [0.0, 0.5])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_both_answers_are_those_of_transformers(generator, reference, prompt, scale):
    """The two rows of a question are the greedy texts of the intact and of the ablated model."""
    off = ["L0H3", "L0H8", "L1H2"]
    tokens = reference.tokenizer.encode(prompt)
    texts, _ = answers(generator.ask(tokens, gates(reference, off, scale), longest=12))
    intact = reference.copy()
    assert texts[0] == intact.generate(prompt, max_new_tokens=12)
    with intact.ablated(off, scale):
        assert texts[1] == intact.generate(prompt, max_new_tokens=12)


def test_tabs_share_a_batch_and_answer_as_if_alone(generator, reference):
    """Tabs with different sets share a batch, and each gets the answer it gets alone."""
    questions = [(prompt, [f"L0H{n}"]) for n, prompt in enumerate(PROMPTS * 2)]
    encoded = [(reference.tokenizer.encode(prompt), off) for prompt, off in questions]
    alone = [answers(generator.ask(t, gates(reference, o), longest=16))[0] for t, o in encoded]
    together = [None] * len(encoded)
    start = threading.Barrier(len(encoded))

    def tab(number):
        tokens, off = encoded[number]
        start.wait()
        stream = generator.ask(tokens, gates(reference, off), longest=16)
        together[number] = answers(stream)[0]

    tabs = [threading.Thread(target=tab, args=(number,)) for number in range(len(encoded))]
    for thread in tabs:
        thread.start()
    for thread in tabs:
        thread.join(60)
    assert together == alone
    assert generator.largest > 2


def test_questions_wait_where_caches_cannot_be_joined(generator, reference, monkeypatch):
    """If caches cannot be joined, questions run one after the other with the same answers."""
    encoded = [reference.tokenizer.encode(prompt) for prompt in PROMPTS]
    alone = [answers(generator.ask(t, gates(reference, ["L0H3"]), longest=16))[0] for t in encoded]
    monkeypatch.setattr("broca.explorer.generator.is_plain", lambda cache: False)
    streams = [generator.ask(t, gates(reference, ["L0H3"]), longest=16) for t in encoded]
    assert [answers(stream)[0] for stream in streams] == alone


def test_next_tokens_come_with_their_probabilities(generator, reference):
    """The most probable next tokens come first, with the model's probabilities."""
    tokens = reference.tokenizer.encode(PROMPTS[0])
    _, events = answers(generator.ask(tokens, gates(reference, []), longest=1))
    first = events[0]["likely"]
    with torch.no_grad(), reference.in_use():
        logits = reference.copy().model(torch.tensor([tokens])).logits[0, -1].float()
    values, chosen = logits.softmax(-1).topk(len(first))
    assert [p for _, p in first] == pytest.approx(values.tolist(), abs=2e-5)
    assert [text for text, _ in first] == [reference.tokenizer.decode([int(t)]) for t in chosen]


def test_every_row_says_why_it_ended(generator, reference):
    """A row ends with "length" at the limit and with "stop" at the end of the sequence."""
    tokens = reference.tokenizer.encode(PROMPTS[0])
    _, events = answers(generator.ask(tokens, gates(reference, []), longest=2))
    assert [(e["row"], e["end"]) for e in events if "end" in e] == [(0, "length"), (1, "length")]
    _, events = answers(generator.ask(tokens, gates(reference, []), longest=64))
    assert {e["end"] for e in events if "end" in e} == {"stop"}


def test_bad_and_cancelled_questions_leave_the_others(generator, reference):
    """A question that fails says so, a cancelled one ends, and later ones are answered."""
    tokens = reference.tokenizer.encode(PROMPTS[0])
    bad = generator.ask([10**9], gates(reference, []), longest=2)
    gone = generator.ask(tokens, gates(reference, []), longest=200)
    gone.cancelled = True
    assert any("error" in event for event in bad)
    assert len([event for event in gone if "end" in event]) == 2
    texts, _ = answers(generator.ask(tokens, gates(reference, []), longest=4))
    assert texts[0]


def test_closing_ends_what_is_written(reference):
    """Closing ends every stream and leaves the model intact."""
    text_generator = Generator(reference)
    stream = text_generator.ask([1, 2, 3], gates(reference, []), longest=200)
    text_generator.close()
    assert list(stream)[-1].keys() >= {"row", "end"}
    reference.require_intact()
