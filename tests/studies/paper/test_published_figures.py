"""Published figures by task, and none for other models."""

import pytest

from broca.published import published_models
from broca.studies.paper.published_figures import PublishedFigures

LARGE, SMALL = (
    PublishedFigures(published_models()[name]) for name in ("llama-3.1-8b", "llama-3.2-1b")
)


def test_scores_are_the_papers():
    """The scores are the paper's, under lm-eval's and the package's task names."""
    assert LARGE.top5("", "gsm8k") == 0.7847
    assert LARGE.top5("gsm8k", "gsm8k") == 0.301
    assert LARGE.top5("mbpp", "humaneval_instruct") == 0.5
    assert LARGE.top5("rhyme", "rhyme") == 0.3097
    assert LARGE.top5("profanity", "general") == 0.7126
    assert LARGE.sweep("gsm8k", 1) == 0.5042
    assert LARGE.sweep("general", 10) == 0.6896
    assert LARGE.knowledge("wmdp_chem", "wmdp_chem") == 0.5
    assert SMALL.knowledge("L0H22", "mmlu") == 0.2455
    assert LARGE.evaluations("greedy") == "5120"
    assert LARGE.evaluations("cs-stratified") == "100 to 400"


def test_lists_are_the_papers():
    """The lists are the paper's for each method, with universal heads apart."""
    assert LARGE.heads("arithmetic", "greedy")[0] == "L15H13"
    assert SMALL.heads("rhyme", "cs-stratified")[0] == "L5H7"
    assert LARGE.universal() == ("L0H31", "L1H29", "L1H31")
    assert "universal" not in LARGE.lists()
    assert SMALL.lists()["gsm8k"][0] == "L15H30"
    assert SMALL.knowledge_heads() == ("L0H22",)
    assert LARGE.knowledge_heads() == ()


@pytest.mark.parametrize("model", [PublishedFigures(None), SMALL])
def test_unpublished_figures_are_none(model):
    """An unpublished model, task, method or number of heads has no figure."""
    assert model.top5("", "gsm8k") is None
    assert LARGE.top5("gsm8k", "capitals") is None
    assert LARGE.top5("capitals", "gsm8k") is None
    assert model.sweep("gsm8k", 1) is None
    assert LARGE.sweep("gsm8k", 11) is None
    assert LARGE.knowledge("L0H22", "mmlu") is None
    assert model.heads("gsm8k", "pooled") == ()
    assert model.evaluations("greedy") == ""
