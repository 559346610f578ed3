"""The description of a task before it is run."""

import pytest

import broca
from broca.errors import BadInput


def test_a_shipped_task_is_described(reference):
    """The description has metric, size and first question, by name or with a loaded model."""
    description = broca.describe_task("addition")
    assert description == broca.describe_task("addition", model=reference)
    assert (description.name, description.request_kind) == ("addition", "generate_until")
    assert description.metric == "exact_match"
    assert description.metrics == ("exact_match",)
    assert description.items == description.requests == 600
    assert description.first_prompt.startswith("compute ")
    assert description.first_target.strip().isdigit()
    assert description.prompt_tokens > 4
    for model in ("reference", reference):
        with pytest.raises(BadInput, match="`max_length` 9999 is more than"):
            broca.describe_task("addition", model=model, max_length=9999)


def test_own_examples_are_described():
    """A task of examples is described by its name and first prompt."""
    task = broca.Task.from_examples([("2 + 2 =", " 4"), ("1 + 2 =", " 3")] * 20, name="mine")
    description = broca.describe_task(task)
    assert description.name == "mine"
    assert description.first_prompt == "2 + 2 ="
