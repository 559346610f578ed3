"""The list of heads gives their positions, and its snippets work."""

import json

import pytest
import torch
from exports.families import FAMILIES, assert_same, log_probabilities, scaled_by_hand
from models.architectures import ARCHITECTURES, make_model

from broca.errors import UnsupportedModel
from broca.exports.head_list import SNIPPETS, has_parallel_mlp, head_list
from broca.models import GatedModel


def test_heads_groups_and_layers_become_pairs_and_slices(tiny):
    """Heads, groups and attention become pairs (layer, head) and slices, each head once."""
    listed = head_list(tiny, ["L1G1", "L0H2", "L1H3"], 0.0)
    assert listed["heads"] == [[0, 2], [1, 2], [1, 3]]
    assert listed["slices"] == {
        "model.layers.0.self_attn.o_proj": [[16, 24]],
        "model.layers.1.self_attn.o_proj": [[16, 24], [24, 32]],
    }
    assert head_list(tiny, ["L1A"], 0.0)["heads"] == [[1, head] for head in range(4)]


@pytest.mark.parametrize("component", ["L0M", "L1", "L0N3"])
def test_other_components_are_refused(tiny, component):
    """A component other than heads, groups and attention is refused."""
    with pytest.raises(UnsupportedModel, match=f"{component} is not a query head"):
        head_list(tiny, [component], 0.0)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
def test_the_hooks_that_it_gives_scale_the_heads(family, tmp_path, monkeypatch):
    """The hooks of the written file scale the heads of the plain model and can be removed."""
    model = family.make()
    heads = family.components.removesuffix("+L1M").split("+")
    gated = GatedModel.wrap(model, None, name=family.what)
    content = head_list(gated, heads, 0.5)
    (tmp_path / "heads.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    lines = {}
    exec(content["snippets"]["hooks"], lines)
    intact = log_probabilities(model)
    handles = lines["ablate"](model)
    without_mlp = type(family)(family.what, family.make, family.projection, None)
    assert_same(model, scaled_by_hand(family.make(), without_mlp, 0.5))
    for handle in handles:
        handle.remove()
    assert torch.equal(log_probabilities(model), intact)


def test_heads_before_a_norm_are_listed_at_its_input():
    """Heads before a norm are listed at the norm's input, where a hook can scale them."""
    (architecture,) = (candidate for candidate in ARCHITECTURES if candidate.name == "BitNet")
    gated = GatedModel.wrap(make_model(architecture), None, name="bitnet")
    assert list(head_list(gated, ["L0H1"], 0.0)["slices"]) == [architecture.norm.format(0)]


def test_there_are_lines_for_every_library():
    """Each library has a snippet that names the file and parses as Python."""
    assert set(SNIPPETS) == {"hooks", "transformer_lens", "nnsight", "pyvene", "mib"}
    for text in SNIPPETS.values():
        assert "heads.json" in text
        compile(text, "snippet", "exec")


def test_the_circuit_is_at_the_level_of_nodes(tiny):
    """The circuit's head scores are negated effects; MLP blocks and the input have no score."""
    circuit = head_list(tiny, ["L1H2"], 0.0, effects={"L1H2": -0.4, "L0H0": 0.1})["mib"]
    assert circuit["cfg"] == {
        "n_layers": 2, "n_heads": 4, "d_model": 32, "parallel_attn_mlp": False,
    }  # fmt: skip
    nodes = circuit["nodes"]
    assert nodes["a1.h2"] == {"in_graph": True, "score": 0.4}
    assert nodes["a0.h0"] == {"in_graph": False, "score": -0.1}
    assert nodes["m0"] == nodes["input"] == nodes["logits"] == {"in_graph": True}
    assert len(nodes) == 1 + 2 * (4 + 1) + 1
    assert head_list(tiny, ["L1H2"], 0.0)["mib"]["nodes"]["a1.h2"]["score"] == 1.0


@pytest.mark.parametrize(
    ("name", "parallel"),
    [("Llama", False), ("GPT-2", False), ("Cohere", True), ("GPT-J", True), ("Phi", True)],
)
def test_parallel_blocks_are_told_by_what_they_read(name, parallel):
    """A parallel MLP block is recognized by the input it reads, whatever the model's class."""
    (architecture,) = (candidate for candidate in ARCHITECTURES if candidate.name == name)
    assert has_parallel_mlp(GatedModel.wrap(make_model(architecture), None, name=name)) == parallel
