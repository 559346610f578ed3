"""Requests in tokens, against lm-eval's own model."""

from datetime import datetime

import pytest
from lm_eval.api.instance import Instance

from broca.errors import BadInput, TaskUnusable
from broca.tasks import Catalog, RequestTokenizer, TaskOptions
from broca.testing import tiny_tokenizer


def test_chat_template_of_a_tokenizer_without_one_is_refused(folder, tokenizer):
    """`chat_template` is refused for a tokenizer without a chat template."""
    with pytest.raises(Exception, match="`chat_template`: the model's tokenizer has no chat temp"):
        Catalog(folder).load("good", tokenizer, options=TaskOptions(chat_template=True))


def test_what_does_not_fit_is_cut_from_the_left():
    """Prompts are cut from the left to fit the context, with room for generated tokens."""
    short = RequestTokenizer(tiny_tokenizer(), max_length=8)
    request = short.loglikelihood("0123456789", "ab")
    assert (len(request.context) + len(request.continuation), request.cut) == (9, 3)
    assert tiny_tokenizer().decode(request.context) == "3456789"
    (generation,) = short.requests(instance("generate_until", ("0123456789", {"max_gen_toks": 3})))
    assert (tiny_tokenizer().decode(generation.context), generation.cut) == ("56789", 5)


def instance(kind, arguments):
    """Returns a request of lm-eval."""
    return Instance(kind, {}, arguments, 0, metadata=("task", 3, 1))


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("generate_until", ("a", {"do_sample": True, "temperature": 1.0}), "samples its gen"),
        ("generate_until", ("a", {"max_gen_toks": 1024}), "leaves no room for a prompt"),
        ("multiple_choice_x", ("a",), "asks for 'multiple_choice_x'"),
    ],
)
def test_requests_that_cannot_be_run_are_refused(tokenizer, kind, arguments, message):
    """Sampling, too long generations and unknown kinds are refused with the task's name."""
    with pytest.raises(TaskUnusable, match=message) as error:
        tokenizer.requests(instance(kind, arguments))
    assert "task 'task'" in str(error.value)


def test_a_system_message_that_a_template_refuses_is_left_out():
    """A refused system message is left out; a template that refuses more is reported."""
    refusing = tiny_tokenizer()
    refusing.chat_template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% elif m.content == 'no' %}{{ raise_exception('no such thing') }}{% endif %}"
        "<{{ m.content }}>{% endfor %}"
    )
    tokenizer = RequestTokenizer(refusing, max_length=64)
    system, user = {"role": "system", "content": "be"}, {"role": "user", "content": "hi"}
    assert tokenizer.chat([system, user]) == "<hi>"
    with pytest.raises(BadInput, match="refuses the prompt: no such thing; leave out `chat_temp"):
        tokenizer.chat([{"role": "user", "content": "no"}])


PARTS = (
    "{% for m in messages %}<{{ m['role'] }}>{% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize("template", [PARTS, PARTS.replace("['text'] }}", "['text'] + '' }}")])
def test_templates_that_iterate_contents_get_parts(template):
    """A template that iterates contents, and shows nothing of a text, gets a list of parts."""
    iterating = tiny_tokenizer()
    iterating.chat_template = template
    tokenizer = RequestTokenizer(iterating, max_length=64)
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    assert tokenizer.chat(messages) == "<system>be<user>hi"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ 'always the same' }}", "leaves out what the user says"),
        ("{{ messages[0].content + 1 }}", "refuses the prompt: "),
        ("{{ messages[5].content.text }}", "refuses the prompt: "),
        ("{{ messages[0].content }}{% if", "refuses the prompt: "),
    ],
)
def test_templates_that_show_no_content_are_refused(template, message):
    """A template that leaves out the prompt, or fails on it, is one line."""
    faulty = tiny_tokenizer()
    faulty.chat_template = template
    with pytest.raises(BadInput, match=message) as error:
        RequestTokenizer(faulty, max_length=64).chat([{"role": "user", "content": "hi"}])
    assert "\n" not in str(error.value)


def test_a_length_beyond_the_configuration_is_refused(tiny):
    """A `max_length` of more than the model is configured for is refused."""
    with pytest.raises(BadInput, match="`max_length` 257 is more than the 256 tokens"):
        RequestTokenizer.of(tiny, TaskOptions(max_length=257))


def test_a_chat_template_says_the_given_date():
    """`strftime_now` formats the given day, and today without one; names tell them apart."""
    chat = tiny_tokenizer()
    chat.chat_template = (
        "{% set form = '%d %b %Y, %H:%M' %}{{ strftime_now(form) }}|{{ messages[-1]['content'] }}"
    )
    message = [{"role": "user", "content": "a"}]
    pinned, later, today = (
        RequestTokenizer(chat, max_length=64, day=day) for day in ("2024-02-29", "2024-03-01", None)
    )
    assert pinned.chat(message) == "29 Feb 2024, 00:00|a"
    assert later.chat(message) == "01 Mar 2024, 00:00|a"
    assert today.chat(message).startswith(datetime.now().strftime("%d %b %Y"))
    assert len({pinned.name, later.name, today.name}) == 3
