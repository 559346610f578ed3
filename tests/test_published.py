"""Published head lists."""

from types import SimpleNamespace

import pytest

from broca.components import Component
from broca.errors import BadInput, UnknownName
from broca.published import (
    model_like,
    notes,
    published_heads,
    published_lists,
    published_models,
    published_results,
)

SHAPE = {"layers": 32, "heads": 32}
LLAMA = SimpleNamespace(structure=SimpleNamespace(layers=32), heads=32)
"""The shape of the 8B model, which is all that is read of it."""


def test_every_head_exists_in_its_model():
    """No list names a layer or head that the model lacks; all have five heads, or are universal."""
    models = published_models()
    assert len({entry.name for entry in published_lists()}) == len(published_lists())
    for entry in published_lists():
        model = models[entry.model]
        for head in map(Component.parse, entry.heads):
            assert head.layer < model.layers, entry
            assert head.index < model.heads, entry
        assert len(set(entry.heads)) == (5 if entry.task != "universal" else len(entry.heads))


def test_lists_of_one_model_are_found():
    """The lists of a model are in order; a model without lists is refused."""
    of_model = published_lists("llama-3.1-8b")
    assert of_model == tuple(entry for entry in published_lists() if entry.model == "llama-3.1-8b")
    assert 0 < len(of_model) < len(published_lists())
    with pytest.raises(UnknownName, match=r"`model` 'llama-3.1' has no published lists.*did you"):
        published_lists("llama-3.1")


def test_contradictions_are_corrected_and_noted():
    """The copied rows are removed, and the number of layers is the model's."""
    names = {entry.name for entry in published_lists()}
    assert not [name for name in names if name.startswith("published:llama-3.2-3b/wmdp")]
    assert "published:llama-3.1-8b/wmdp_bio/css" in names
    assert published_models()["qwen2.5-3b"].layers == 36
    assert any("36 layers" in note for note in notes())


def test_lists_are_found_by_name():
    """Names work with and without the method; heads that are no name of a list stay."""
    css = published_heads("published:llama-3.1-8b/gsm8k/css", LLAMA)
    assert css == ("L15H13", "L16H2", "L12H12", "L16H21", "L13H18")
    assert published_heads("published:llama-3.1-8b/gsm8k", LLAMA) == css
    for heads in ("L0H1", ["L0H1"]):
        assert published_heads(heads, LLAMA) is heads


def test_unknown_lists_and_other_models_are_refused():
    """The message has a suggestion or both shapes."""
    with pytest.raises(UnknownName, match=r"did you mean 'published:llama-3\.1-8b/gsm8k/css'"):
        published_heads("published:llama-3.1-8b/gsm8/css", LLAMA)
    small = SimpleNamespace(structure=SimpleNamespace(layers=6), heads=16)
    with pytest.raises(BadInput, match="16 heads"):
        published_heads("published:llama-3.1-8b/gsm8k/css", small)


def test_figures_have_one_value_for_every_task():
    """Rows are as long as their header, and each k of the sweep has a value."""
    for name in published_models():
        for key in ("top5", "wmdp"):
            table = published_results(name).get(key, {})
            for row, values in table.items():
                assert len(values) == len(table["tasks"]), (name, key, row)
    sweep = published_results("llama-3.1-8b")["k_sweep"]
    assert {len(values) for row, values in sweep.items() if row != "heads"} == {11}
    assert published_results("qwen2.5-7b") == {}


def test_models_are_recognised_by_shape_and_name():
    """Shape and name must both match."""
    assert model_like(name="meta-llama/Llama-3.1-8B-Instruct", **SHAPE).name == "llama-3.1-8b"
    assert model_like(name="reference", **SHAPE) is None
    assert model_like(name="Llama-3.1-8B-Instruct", layers=2, heads=4) is None
