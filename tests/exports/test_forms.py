"""Adapters, checkpoints and lists of heads equal the ablated model in other libraries."""

import copy
import json
import sys

import pytest
import torch
import transformers as hf
from exports.families import FAMILIES, assert_same, gated, log_probabilities, scaled_by_hand
from models.test_quantized import packed as packed_model
from safetensors.torch import load_file

from broca.errors import BadInput, UnsupportedModel
from broca.exports import forms
from broca.exports.check import Origin
from broca.exports.factors import factors_of
from broca.exports.request import ExportRequest
from broca.models import ActiveGates, GatedModel, captured, load

CPU = torch.device("cpu")


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("form", ["adapter", "weights", "heads"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
def test_an_export_equals_the_model_scaled_by_hand(family, form, scale, tmp_path):
    """Each form, loaded by other libraries, equals weights scaled by hand; the model is intact."""
    model = family.make()
    before = log_probabilities(model)
    base, out = tmp_path / "base", tmp_path / "out"
    model.save_pretrained(base)
    out.mkdir()
    wrapped = GatedModel.wrap(model, None, name=family.what)
    request = ExportRequest.of(wrapped, family.components(form), form, scale)
    forms.write_form(request, wrapped, request.names(wrapped), out, base=str(base))
    exported = Origin(str(base), None, "float32", CPU).load(out, form)
    reference = scaled_by_hand(model, family, form, scale)
    assert_same(exported, reference)
    assert not torch.allclose(log_probabilities(reference), before, atol=1e-2)
    assert torch.equal(log_probabilities(model), before)
    if form == "adapter":
        assert (out / forms.VECTORS).stat().st_size < 4096
        with exported.disable_adapter():
            assert_same(exported, model, within=1e-5)
        assert_same(exported.merge_and_unload(), reference)


def test_the_base_is_loaded_in_its_number_format(tmp_path):
    """A shipped base is loaded from its folder in the number format of the model."""
    origin = Origin.of(load("reference-small", device="cpu", dtype="bfloat16"))
    assert (origin.dtype, origin.revision) == ("bfloat16", None)
    (tmp_path / "heads.json").write_text('{"slices": {}, "scale": 0}')
    assert origin.load(tmp_path, "heads").dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "components", "form", "message"),
    [
        ("BitNet", "L0H1", "adapter", r"L0H1 cannot .*a norm \(.*attn_sub_norm\) mixes the heads"),
        ("Llama", "L1", "weights", r"L1 cannot .*what a decoder layer adds .* export L1A\+L1M"),
        ("Qwen3-MoE", "L0E1", "adapter", "what ablates .*experts .* use `kind` weights"),
        ("GPT-2", "L0M+L0N1", "adapter", r"either the input or the output .*mlp\.c_proj"),
        ("Llama", "L0M", "heads", "L0M is not a query head"),
        ("Llama", "L0N3", "heads", "L0N3 is not a query head"),
    ],
)
def test_what_a_form_cannot_hold_is_refused(name, components, form, message, tmp_path):
    """Heads before a norm, layers, fused experts and both sides of a projection are refused."""
    model = gated(name)
    request = ExportRequest.of(model, components, form, None)
    with pytest.raises(UnsupportedModel, match=message):
        forms.write_form(request, model, request.names(model), tmp_path, base=None)


def test_peft_is_needed(monkeypatch):
    """Without PEFT the refusal says what to install."""
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(BadInput, match=r"pip install 'broca\[export\]'"):
        forms.require_peft()


def test_quantized_layers_are_left_as_they_are(tmp_path):
    """An adapter can scale a quantized layer, whose weights cannot be rewritten."""
    packed = GatedModel.wrap(packed_model(), None, name="packed")
    forms.write_adapter(factors_of(packed, "L0H1"), tmp_path, base=None)
    (vector,) = load_file(tmp_path / forms.VECTORS).values()
    assert vector.tolist() == [[1.0] * 8 + [0.0] * 8 + [1.0] * 16]
    message = r"are quantized \(StandIn, int8\): .* as an adapter"
    with pytest.raises(UnsupportedModel, match=message):
        forms.changed_tensors(packed, "L0H1")


@pytest.mark.parametrize("name", ["Mixtral", "Qwen3-MoE", "OLMoE", "DeepSeek-V3"])
def test_experts_are_scaled_in_their_last_matrix(name, tmp_path):
    """A checkpoint holds ablated experts, or a block with all of them, shared ones too."""
    wrapped = gated(name)
    model = wrapped.model
    for components, scale in (("L1E2", 0.0), ("L1M", 0.0), ("L1M+L1E2+L0M", 0.5)):
        with wrapped.ablated(components, scale):
            reference = log_probabilities(model)
        changed = forms.changed_tensors(wrapped, components, scale)
        forms.write_weights(wrapped, changed, tmp_path / components)
        loaded = hf.AutoModelForCausalLM.from_pretrained(tmp_path / components, dtype="float32")
        assert torch.allclose(log_probabilities(loaded.eval()), reference, atol=1e-4)
        assert not torch.allclose(log_probabilities(model), reference, atol=1e-3)
    (path, down), *others = forms.changed_tensors(wrapped, "L1E2").items()
    assert (path.rpartition(".")[2], others) == ("down_proj", [])
    assert [bool(expert.any()) for expert in down] == [True, True, False, True]


@pytest.mark.parametrize("components", ["L0H1+L2H0", "L0A+L1M+L1H2+L1N3", "L0H1+L0G1+L0A"])
def test_mean_ablation_goes_into_the_biases(tiny, components):
    """Mean ablation in biases equals replacing the outputs; a projection without one is refused."""
    wrapped = gated("GPT-2")
    model = wrapped.model
    parts = wrapped.gated_parts(components)
    with captured(parts.points) as activations:
        log_probabilities(model)
    means = {
        point: activation.flatten(0, 1).mean(0)[None] for point, activation in activations.items()
    }
    changed = forms.changed_tensors(wrapped, components, means=means)
    with ActiveGates(parts.points, parts.values, replacement=means, every_row=True):
        reference = log_probabilities(model)
    zeros = {tiny.gated_parts("L0H2").points[0]: torch.zeros(1, 32)}
    with pytest.raises(UnsupportedModel, match=r"stands in for L0H2 .* which has none"):
        forms.changed_tensors(tiny, "L0H2", means=zeros)
    biased = copy.deepcopy(model)
    biased.load_state_dict(changed, strict=False)
    assert torch.allclose(log_probabilities(biased), reference, atol=1e-4)
    assert not torch.allclose(log_probabilities(model), reference, atol=1e-2)


def test_heads_groups_and_layers_become_pairs_and_slices(tiny):
    """Heads, groups and attention become pairs (layer, head) and slices."""
    listed = forms.head_list(tiny, ["L1G1", "L0H2", "L1H3"], 0.0)
    assert listed["heads"] == [[0, 2], [1, 2], [1, 3]]
    assert listed["slices"] == {
        "model.layers.0.self_attn.o_proj": [[16, 24]],
        "model.layers.1.self_attn.o_proj": [[16, 24], [24, 32]],
    }
    assert forms.head_list(tiny, ["L1A"], 0.0)["heads"] == [[1, head] for head in range(4)]
    bitnet = gated("BitNet")  # its heads are listed at the input of a norm
    assert [*forms.head_list(bitnet, ["L0H1"], 0.0)["slices"]] == [
        "model.layers.0.self_attn.attn_sub_norm"
    ]


def test_the_hooks_can_be_removed(tiny, tmp_path, monkeypatch):
    """Every library has Python that reads the list; what that of transformers does is undone."""
    for name, text in forms.SNIPPETS.items():
        compile(text, name, "exec")
    (tmp_path / "heads.json").write_text(json.dumps(forms.head_list(tiny, ["L0H2"], 0.5)))
    monkeypatch.chdir(tmp_path)
    lines, model = {}, copy.deepcopy(tiny.model)
    exec(forms.SNIPPETS["hooks"], lines)
    intact = log_probabilities(model)
    handles = lines["ablate"](model)
    assert not torch.equal(log_probabilities(model), intact)
    for handle in handles:
        handle.remove()
    assert torch.equal(log_probabilities(model), intact)
