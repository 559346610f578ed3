"""Published figures by task, and none for other models."""

import pytest

from broca.published import published_models
from broca.studies.paper import published_figures as figures

LARGE, SMALL = (published_models()[name] for name in ("llama-3.1-8b", "llama-3.2-1b"))


def test_scores_are_the_papers():
    """The scores are the paper's, under lm-eval's and the package's task names."""
    assert figures.top5(LARGE, "", "gsm8k") == 0.7847
    assert figures.top5(LARGE, "gsm8k", "gsm8k") == 0.301
    assert figures.top5(LARGE, "mbpp", "humaneval_instruct") == 0.5
    assert figures.top5(LARGE, "rhyme", "rhyme") == 0.3097
    assert figures.top5(LARGE, "profanity", "general") == 0.7126
    assert figures.sweep(LARGE, "gsm8k", 1) == 0.5042
    assert figures.sweep(LARGE, "general", 10) == 0.6896
    assert figures.knowledge(LARGE, "wmdp_chem", "wmdp_chem") == 0.5
    assert figures.knowledge(SMALL, "L0H22", "mmlu") == 0.2455
    assert figures.evaluations(LARGE, "greedy") == "5120"
    assert figures.evaluations(LARGE, "cs-stratified") == "100 to 400"


def test_lists_are_the_papers():
    """The lists are the paper's for each method, with universal heads apart."""
    assert figures.heads(LARGE, "arithmetic", "greedy")[0] == "L15H13"
    assert figures.heads(SMALL, "rhyme", "cs-stratified")[0] == "L5H7"
    assert figures.universal(LARGE) == ("L0H31", "L1H29", "L1H31")
    assert "universal" not in figures.lists(LARGE)
    assert figures.lists(SMALL)["gsm8k"][0] == "L15H30"
    assert figures.knowledge_heads(SMALL) == ("L0H22",)
    assert figures.knowledge_heads(LARGE) == ()


@pytest.mark.parametrize("model", [None, SMALL])
def test_unpublished_figures_are_none(model):
    """An unpublished model, task, method or number of heads has no figure."""
    assert figures.top5(model, "", "gsm8k") is None
    assert figures.top5(LARGE, "gsm8k", "capitals") is None
    assert figures.top5(LARGE, "capitals", "gsm8k") is None
    assert figures.sweep(model, "gsm8k", 1) is None
    assert figures.sweep(LARGE, "gsm8k", 11) is None
    assert figures.knowledge(LARGE, "L0H22", "mmlu") is None
    assert figures.heads(model, "gsm8k", "pooled") == ()
    assert figures.evaluations(model, "greedy") == ""
