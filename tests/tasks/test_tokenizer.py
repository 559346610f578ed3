"""Requests in tokens, chat templates and refusals."""

from datetime import datetime

import pytest
from lm_eval.api.instance import Instance
from tiny import tiny_tokenizer
from tokenizers.processors import TemplateProcessing

from broca.errors import BadInput, TaskUnusable
from broca.tasks import RequestTokenizer, TaskOptions


def test_requests_that_cannot_be_run_are_refused(tokenizer):
    """Sampling, too long generations and unknown kinds are refused with the task's name."""
    sampled, long = {"do_sample": True, "temperature": 1.0}, {"max_gen_toks": 1024}
    for kind, arguments, message in (
        ("generate_until", ("a", sampled), "task 'task' samples its gen"),
        ("generate_until", ("a", long), "task 'task' generates .* leaves no room for a prompt"),
        ("multiple_choice_x", ("a",), "task 'task' asks for 'multiple_choice_x'"),
    ):
        with pytest.raises(TaskUnusable, match=message):
            tokenizer.requests(Instance(kind, {}, arguments, 0, metadata=("task", 3, 1)))


def test_a_tokenizer_that_ends_every_text_is_named():
    """A token between each prompt and its answer is noted; lm-eval has it too."""
    tokenizer = tiny_tokenizer()
    assert RequestTokenizer(tokenizer, max_length=64).prompt_notes("mine") == []
    ends = TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    tokenizer.backend_tokenizer.post_processor = ends
    (note,) = RequestTokenizer(tokenizer, max_length=64).prompt_notes("mine")
    assert "ends every text with a token of its own" in note


def chatting(template, **settings):
    """Returns a tokenizer of requests with a chat template."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    return RequestTokenizer(tokenizer, max_length=64, **settings)


USER = {"role": "user", "content": "hi"}


def test_templates_get_what_they_can_show():
    """Templates that leave texts out or refuse them get a list of parts."""
    for shown in (
        "{% for part in m.content %}{{ part.text if part.type == 'text' }}{% endfor %}",
        "{{ m.content[0].text + '' }}",
    ):
        tokenizer = chatting(f"{{% for m in messages %}}<{{{{ m.role }}}}>{shown}{{% endfor %}}")
        said = tokenizer.chat([{"role": "system", "content": "be"}, USER])
        assert said == "<system>be<user>hi"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ 'always the same' }}", "leaves out what the user says"),
        ("{{ raise_exception('no such thing') }}", "no such thing; leave out `chat_template`"),
        ("{{ messages[5].content.text }}", "refuses the prompt: "),
        ("{{ messages[0].content }}{% if", "refuses the prompt: "),
    ],
)
def test_templates_that_show_no_content_are_refused(template, message):
    """A template that leaves out the prompt, or fails on it, is one line."""
    with pytest.raises(BadInput, match=message) as error:
        chatting(template).chat([USER])
    assert "\n" not in str(error.value)
    misspelt = TaskOptions(chat_template=True, chat_template_kwargs={"thinkin": False})
    with pytest.raises(BadInput, match="`chat_template_kwargs`: the template has no 'thinkin'"):
        chatting("{{ thinking, messages }}", options=misspelt).require_chat_template()


def test_chat_templates_have_a_time_limit(reference, monkeypatch):
    """A loop without an end is ended, in prompts of tasks and in generations."""
    loop = "{% for i in range(99999) %}" * 2 + "{% endfor %}" * 2
    for place in ("tasks.tokenizer", "models.gated"):
        monkeypatch.setattr(f"broca.{place}.SECONDS", 0.3)
    monkeypatch.setattr(reference.tokenizer, "chat_template", loop)
    tasks, model = chatting(loop), reference
    for render in (lambda: tasks.chat([USER]), lambda: model.generate("hi", chat=True)):
        with pytest.raises(BadInput, match=r"the chat template of .* took more than 0\.3 s"):
            render()


def test_a_chat_template_says_the_given_date():
    """`strftime_now` formats the given day, and today without one; names tell them apart."""
    template = (
        "{% set form = '%d %b %Y, %H:%M' %}{{ strftime_now(form) }}|{{ messages[-1]['content'] }}"
    )
    days = ("2024-02-29", "2024-03-01", None)
    options = [TaskOptions(chat_template=True, chat_template_date=day) for day in days]
    pinned, later, today = (chatting(template, options=one) for one in options)
    assert pinned.chat([USER]) == "29 Feb 2024, 00:00|hi"
    assert later.chat([USER]) == "01 Mar 2024, 00:00|hi"
    assert today.chat([USER]).startswith(datetime.now().strftime("%d %b %Y"))
    assert len({pinned.name, later.name, today.name}) == 3
