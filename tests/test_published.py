"""Published head lists and figures."""

import json
from importlib.resources import files
from types import SimpleNamespace

import pytest

from broca import Component, published
from broca.errors import BadInput, UnknownName

LARGE, SMALL = (
    published.PublishedFigures("llama-3.1-8b"),
    published.PublishedFigures("llama-3.2-1b"),
)
LLAMA = SimpleNamespace(structure=SimpleNamespace(layers=32), heads=32)
"""The shape of the 8B model, which is all that is read of it."""


def test_every_head_exists_in_its_model():
    """No list names a layer or head that the model lacks; all have five heads, or are universal."""
    models = published.published_models()
    assert len({entry.name for entry in published.published_lists()}) == len(
        published.published_lists()
    )
    for entry in published.published_lists():
        model = models[entry.model]
        for head in map(Component.parse, entry.heads):
            assert head.layer < model.layers, entry
            assert head.index < model.heads, entry
        assert len(set(entry.heads)) == (5 if entry.task != "universal" else len(entry.heads))


def test_contradictions_are_corrected_and_noted():
    """The copied rows are removed, and the number of layers is the model's."""
    names = {entry.name for entry in published.published_lists()}
    assert not [name for name in names if name.startswith("published:llama-3.2-3b/wmdp")]
    assert "published:llama-3.1-8b/wmdp_bio/css" in names
    assert published.published_models()["qwen2.5-3b"].layers == 36
    assert any("36 layers" in note for note in published.notes())


def test_lists_are_found_by_name():
    """Names work with and without the method; heads that are no name of a list stay."""
    css = published.published_heads("published:llama-3.1-8b/gsm8k/css", LLAMA)
    assert css == ("L15H13", "L16H2", "L12H12", "L16H21", "L13H18")
    assert published.published_heads("published:llama-3.1-8b/gsm8k", LLAMA) == css
    for heads in ("L0H1", ["L0H1"]):
        assert published.published_heads(heads, LLAMA) is heads
    with pytest.raises(UnknownName, match=r"did you mean 'published:llama-3\.1-8b/gsm8k/css'"):
        published.published_heads("published:llama-3.1-8b/gsm8/css", LLAMA)
    small = SimpleNamespace(structure=SimpleNamespace(layers=6), heads=16)
    with pytest.raises(BadInput, match="16 heads"):
        published.published_heads("published:llama-3.1-8b/gsm8k/css", small)


def test_models_are_recognised_by_shape_and_name():
    """Shape and name must both match."""
    hub = "meta-llama/Llama-3.1-8B-Instruct"
    assert published.PublishedFigures.of(name=hub, layers=32, heads=32).heads("universal")
    assert not published.PublishedFigures.of(name="reference", layers=32, heads=32).heads(
        "universal"
    )
    assert not published.PublishedFigures.of(name=hub, layers=2, heads=4).heads("universal")


def test_figures_have_one_value_for_every_task():
    """Rows are as long as their header, and each k of the sweep has a value."""
    text = (files("broca.published") / "compressed_sensing.json").read_text(encoding="utf-8")
    for name, tables in json.loads(text)["results"].items():
        for table in (tables.get("top5", {}), tables.get("wmdp", {})):
            assert all(len(row) == len(table["tasks"]) for row in table.values()), name
        sweep = tables.get("k_sweep", {})
        assert all(len(values) == 11 for row, values in sweep.items() if row != "heads"), name


def test_scores_are_the_papers():
    """The scores are the paper's, under lm-eval's and the package's task names."""
    assert LARGE.top5("", "gsm8k") == 0.7847
    assert LARGE.top5("gsm8k", "gsm8k") == 0.301
    assert LARGE.top5("mbpp", "humaneval_instruct") == 0.5
    assert LARGE.top5("rhyme", "rhyme") == 0.3097
    assert LARGE.top5("profanity", "general") == 0.7126
    assert LARGE.top5("profanity", "profanity") is None
    assert LARGE.sweep("arithmetic", 5) is None
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
    assert LARGE.heads("universal") == ("L0H31", "L1H29", "L1H31")
    assert SMALL.heads("gsm8k", "cs-stratified")[0] == "L15H30"
    assert SMALL.knowledge_heads() == ("L0H22",)
    assert LARGE.knowledge_heads() == ()


@pytest.mark.parametrize("model", [published.PublishedFigures(None), SMALL])
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
