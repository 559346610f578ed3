"""Published figures by task; nothing for other models."""

import pytest

from broca.published import published_models
from broca.studies.paper import beside

LARGE, SMALL = (published_models()[name] for name in ("llama-3.1-8b", "llama-3.2-1b"))


def test_scores_are_the_papers():
    """By lm-eval's and the package's names of tasks."""
    assert beside.top5(LARGE, "", "gsm8k") == 0.7847
    assert beside.top5(LARGE, "gsm8k", "gsm8k") == 0.301
    assert beside.top5(LARGE, "mbpp", "humaneval_instruct") == 0.5
    assert beside.top5(LARGE, "rhyme", "rhyme") == 0.3097
    assert beside.top5(LARGE, "profanity", "general") == 0.7126
    assert beside.sweep(LARGE, "gsm8k", 1) == 0.5042
    assert beside.sweep(LARGE, "general", 10) == 0.6896
    assert beside.knowledge(LARGE, "wmdp_chem", "wmdp_chem") == 0.5
    assert beside.knowledge(SMALL, "L0H22", "mmlu") == 0.2455
    assert beside.evaluations(LARGE, "greedy") == "5120"
    assert beside.evaluations(LARGE, "cs-stratified") == "100 to 400"


def test_lists_are_the_papers():
    """By method; universal heads apart."""
    assert beside.heads(LARGE, "arithmetic", "greedy")[0] == "L15H13"
    assert beside.heads(SMALL, "rhyme", "cs-stratified")[0] == "L5H7"
    assert beside.universal(LARGE) == ("L0H31", "L1H29", "L1H31")
    assert "universal" not in beside.lists(LARGE)
    assert beside.lists(SMALL)["gsm8k"][0] == "L15H30"
    assert beside.knowledge_heads(SMALL) == ("L0H22",)
    assert beside.knowledge_heads(LARGE) == ()


@pytest.mark.parametrize("model", [None, SMALL])
def test_what_was_not_published_is_nothing(model):
    """No figure is made up for another model, task, method or number of heads."""
    assert beside.top5(model, "", "gsm8k") is None
    assert beside.top5(LARGE, "gsm8k", "capitals") is None
    assert beside.top5(LARGE, "capitals", "gsm8k") is None
    assert beside.sweep(model, "gsm8k", 1) is None
    assert beside.sweep(LARGE, "gsm8k", 11) is None
    assert beside.knowledge(LARGE, "L0H22", "mmlu") is None
    assert beside.heads(model, "gsm8k", "focus") == ()
    assert beside.evaluations(model, "greedy") == ""
