"""lm-eval's templates are compiled once, and its environment is restored."""

import pytest
from lm_eval.utils import apply_template, env

from broca.tasks.templates import compiled_once


def test_template_renders_as_without(monkeypatch):
    """A template renders the same text and is compiled at most once for many documents."""
    source = "{{a}} and {{b|upper}}"
    documents = [{"a": n, "b": "x" * n} for n in range(5)]
    expected = [apply_template(source, document) for document in documents]
    compiled = []
    compile_ = type(env).compile

    def counted(self, *args, **kwargs):
        compiled.append(args)
        return compile_(self, *args, **kwargs)

    monkeypatch.setattr(type(env), "compile", counted)
    with compiled_once():
        assert [apply_template(source, document) for document in documents] == expected
    assert len(compiled) <= 1


def test_environment_is_restored_after_an_error():
    """After an error in nested contexts the environment has no replaced method."""
    with pytest.raises(ZeroDivisionError), compiled_once(), compiled_once():
        raise ZeroDivisionError
    assert "from_string" not in env.__dict__
