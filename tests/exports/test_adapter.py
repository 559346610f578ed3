"""The adapter gives the ablated model's output on the plain base model with PEFT alone."""

import peft
import pytest
import torch
import transformers as hf
from exports.families import FAMILIES, assert_same, log_probabilities, scaled_by_hand

from broca.errors import BadInput, UnsupportedModel
from broca.exports.adapter import WEIGHTS, require_peft, write_adapter
from broca.exports.factors import factors_of
from broca.exports.weights import changed_tensors
from broca.models import GatedModel
from broca.testing import tiny_llama


def exported(family, folder, scale=0.0, components=None):
    """Returns the plain model, and its copy from disk with the adapter."""
    model = family.make()
    model.save_pretrained(folder / "base")
    gated = GatedModel.wrap(model, None, name=family.what)
    factors = factors_of(gated, components or family.components, scale)
    write_adapter(factors, folder, base=str(folder / "base"))
    base = hf.AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32)
    return model, peft.PeftModel.from_pretrained(base, folder).eval()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
def test_adapter_equals_the_model_scaled_by_hand(family, tmp_path):
    """The adapter equals weights scaled by hand, switched on or merged, and is under 4 KiB."""
    model, adapted = exported(family, tmp_path)
    reference = scaled_by_hand(model, family, 0.0)
    assert not torch.allclose(log_probabilities(reference), log_probabilities(model), atol=1e-2)
    assert_same(adapted, reference)
    with adapted.disable_adapter():
        assert_same(adapted, model, within=1e-5)
    assert (tmp_path / WEIGHTS).stat().st_size < 4096
    assert_same(adapted.merge_and_unload(), reference)


@pytest.mark.parametrize("family", FAMILIES[:3], ids=lambda family: family.what)
def test_adapter_scales(family, tmp_path):
    """An adapter scales components by any factor."""
    model, adapted = exported(family, tmp_path, 0.3)
    assert_same(adapted, scaled_by_hand(model, family, 0.3))


def test_what_an_adapter_cannot_hold_is_refused(tmp_path):
    """Fused experts, and factors on both sides of one projection, are refused."""
    moe = GatedModel.wrap(FAMILIES[3].make(), None, name="moe")
    with pytest.raises(UnsupportedModel, match=r"experts of .* use `kind` weights"):
        write_adapter(factors_of(moe, "L0E1"), tmp_path, base=None)
    biased = GatedModel.wrap(FAMILIES[2].make(), None, name="gpt2")
    with pytest.raises(UnsupportedModel, match=r"either the input or the output of .*mlp.c_proj"):
        write_adapter(factors_of(biased, "L0M+L0N1"), tmp_path, base=None)


def test_missing_peft_is_refused(monkeypatch):
    """A missing PEFT is refused with the command that installs it."""
    assert require_peft() is peft
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(BadInput, match=r"pip install 'broca\[export\]'"):
        require_peft()


def test_quantized_layers_are_left_as_they_are(tmp_path):
    """An adapter can scale a quantized layer, whose weights cannot be rewritten."""
    from models.test_quantized import EightBit
    from safetensors.torch import load_file

    model = tiny_llama()
    model.model.layers[0].self_attn.o_proj = EightBit(model.model.layers[0].self_attn.o_proj)
    gated = GatedModel.wrap(model, None, name="packed")
    write_adapter(factors_of(gated, "L0H1"), tmp_path, base=None)
    (vector,) = load_file(tmp_path / WEIGHTS).values()
    assert vector.tolist() == [[1.0] * 8 + [0.0] * 8 + [1.0] * 16]
    with pytest.raises(
        UnsupportedModel, match=r"are quantized \(EightBit, int8\): .* as an adapter"
    ):
        changed_tensors(gated, "L0H1")
