"""The options of every verb that measures check their values."""

from functools import partial

import numpy as np
import pytest

from broca.errors import BadInput
from broca.options import DataOptions, JournalOptions, RunOptions, TaskOptions
from broca.options.verbs import ChatOptions, ScanOptions, VerifyOptions
from broca.verification import Scope

TEMPLATE = {"chat_template": True}


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (TaskOptions, {"limit": 2.5}, "`limit` must be"),
        (TaskOptions, {"metric": " "}, "`metric` is empty"),
        (TaskOptions, {"reference": 5}, "`reference` '5' is unknown"),
        (TaskOptions, {"gen_kwargs": "max_gen_tok=3"}, "did you mean 'max_gen_toks'"),
        (TaskOptions, {"gen_kwargs": "max_gen_toks=0"}, "a number of tokens, not '0'"),
        (TaskOptions, {"gen_kwargs": "max_gen_toks"}, "is not of the form NAME=VALUE"),
        (TaskOptions, {"gen_kwargs": "{max_gen_toks: 3"}, "is not JSON"),
        (TaskOptions, {"gen_kwargs": {"until": 3}}, "a text or a list of texts, not 3"),
        (TaskOptions, {"gen_kwargs": {"suppress_tokens": {3}}}, "`gen_kwargs` takes texts"),
        (TaskOptions, TEMPLATE | {"chat_template_kwargs": {1: 2, "a": 3}}, "takes texts"),
        (TaskOptions, {"gen_kwargs": "temperature=0.7"}, "requests sampling"),
        (TaskOptions, {"gen_kwargs": "num_beams=2"}, "broca decodes greedily"),
        (TaskOptions, {"chat_template_kwargs": "a=1"}, "not used: add `chat_template`"),
        (TaskOptions, TEMPLATE | {"chat_template_kwargs": "a"}, "`chat_template_kwargs` 'a' is"),
        (TaskOptions, {"chat_template_date": "2026-03-01"}, "not used: add `chat_template`"),
        (TaskOptions, {"fewshot_as_multiturn": False}, "not used: add `chat_template`"),
        (TaskOptions, TEMPLATE | {"chat_template_date": "1 March"}, "must be YYYY-MM-DD"),
        (TaskOptions, TEMPLATE | {"chat_template_date": 20260301}, "must be YYYY-MM-DD"),
        (ScanOptions, {"model": "m", "on_progress": 5}, r"`on_progress` must be a function, not 5"),
        (ChatOptions, {"target": "m", "lines": "ab"}, "`lines` must be lines of text, not 'ab'"),
        (VerifyOptions, {"target": "m", "scope": {}}, "`scope` must be a broca.Scope, not {}"),
        (Scope, {"level": 1.5}, "`level` must be below 1, not 1.5"),
        (Scope, {"resamples": 0}, "`resamples` must be at least 1, not 0"),
        (Scope, {"member_items": 0}, "`member_items` must be at least 1, not 0"),
        (Scope, {"controls": -1}, "`controls` must be at least 0, not -1"),
        (VerifyOptions, {"target": "m", "scope": JournalOptions()}, "must be a broca.Scope, not J"),
        (DataOptions, {"fields": "prompt"}, "`fields` 'prompt' is not of the form"),
        (DataOptions, {"fields": "prompt= "}, "is not of the form"),
    ],
)
def test_values_that_mean_nothing_are_refused(cls, values, message):
    """What no type of a field says is refused too."""
    with pytest.raises(BadInput, match=message):
        cls(**values)


def test_only_what_differs_is_recorded():
    """`to_dict` holds the values that differ from the defaults, and functions by their names."""
    assert TaskOptions().to_dict() == {}
    given = {"limit": 0.5, "chat_template": True}
    assert TaskOptions(**given).to_dict() == given
    recorded = TaskOptions(reference=partial(test_only_what_differs_is_recorded)).to_dict()
    assert recorded["reference"].endswith(":test_only_what_differs_is_recorded")


def test_settings_of_generations_are_read_in_every_form():
    """Pairs, JSON and mappings give equal options, which are hashable and recorded as JSON."""
    forms = (
        "max_gen_toks=64,until=Q:,do_sample=False",
        " max_new_tokens=64 , until=Q:,temperature=0",
        '{"until": ["Q:"], "max_tokens": 64, "do_sample": false}',
        {"max_completion_tokens": 64, "until": "Q:", "temperature": 0.0},
    )
    (options,) = {TaskOptions(gen_kwargs=form) for form in forms}
    assert options.generation == {"max_gen_toks": 64, "until": ["Q:"], "do_sample": False}
    assert options == TaskOptions(gen_kwargs=options.gen_kwargs)
    recorded = '{"do_sample": false, "max_gen_toks": 64, "until": ["Q:"]}'
    assert options.to_dict() == {"gen_kwargs": recorded}


def test_settings_of_transformers_are_read_as_values():
    """Numbers, lists and null of settings that greedy decoding follows are no texts."""
    options = TaskOptions(gen_kwargs="repetition_penalty=1.5,num_beams=1,suppress_tokens=none")
    expected = {"repetition_penalty": 1.5, "num_beams": 1, "suppress_tokens": None}
    assert options.generation == expected
    options = TaskOptions(gen_kwargs={"bad_words_ids": np.array([[3]])})
    assert options.generation == {"bad_words_ids": [[3]]}


def test_variables_of_the_chat_template_are_read_in_every_form():
    """Pairs, JSON and mappings give the same options, which can be hashed."""
    forms = (
        "enable_thinking=false,effort=low",
        '{"enable_thinking": false, "effort": "low"}',
        {"effort": "low", "enable_thinking": False},
    )
    (options,) = {TaskOptions(**TEMPLATE, chat_template_kwargs=form) for form in forms}
    assert options.template_settings == {"effort": "low", "enable_thinking": False}
    assert options == TaskOptions(**TEMPLATE, chat_template_kwargs=options.chat_template_kwargs)


def test_columns_of_data_sets_are_read():
    """`fields` gives the column of each part of an example."""
    columns = {"prompt": "question", "answer": "target"}
    assert DataOptions(fields="prompt=question, answer = target").columns == columns


def test_options_within_a_workspace_measure_there():
    """`within` sets the journal to the workspace and keeps all other options."""
    options = RunOptions(journal_options=JournalOptions(keep_outputs=0.5))
    inside = options.within("a workspace")
    assert inside.journal_options == JournalOptions(journal="a workspace", keep_outputs=0.5)
    assert inside.within(None) == options
    assert RunOptions(on_progress=print).within("a workspace").on_progress is None
