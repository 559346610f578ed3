"""The description of a task before it is run."""

import pytest

import broca
from broca.errors import BrocaError


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


def test_options_change_how_it_is_asked():
    """Choices are requests; a limit reduces the items, examples lengthen the prompt."""
    choices = broca.describe_task("mc_biology")
    assert choices.requests > choices.items
    assert 0 < choices.chance < 1
    few = broca.describe_task("addition", limit=12)
    assert few.items == 12
    assert broca.describe_task("addition", num_fewshot=2).prompt_tokens > few.prompt_tokens


def test_own_examples_are_described():
    """A task of examples is described by its name and first prompt."""
    task = broca.Task.from_examples([("2 + 2 =", " 4"), ("1 + 2 =", " 3")] * 20, name="mine")
    description = broca.describe_task(task)
    assert description.name == "mine"
    assert description.first_prompt == "2 + 2 ="


def test_a_metric_that_the_task_lacks_is_refused():
    """An unknown metric is refused by name."""
    with pytest.raises(BrocaError, match="bleu"):
        broca.describe_task("addition", metric="bleu")
