"""Checkpoints with the ablation in their weights need transformers alone."""

import pytest
import torch
import transformers as hf
from exports.families import FAMILIES, assert_same, log_probabilities, scaled_by_hand
from models.architectures import ARCHITECTURES, make_model

from broca.errors import UnsupportedModel
from broca.exports.weights import changed_tensors, with_tensors, write_weights
from broca.models import GatedModel, captured
from broca.testing import tiny_llama


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
def test_checkpoint_equals_the_model_scaled_by_hand(family, scale, tmp_path):
    """A checkpoint loaded by transformers equals weights scaled by hand; the model stays intact."""
    model = family.make()
    before = log_probabilities(model)
    gated = GatedModel.wrap(model, None, name=family.what)
    write_weights(gated, changed_tensors(gated, family.components, scale), tmp_path)
    assert torch.equal(log_probabilities(model), before)
    loaded = hf.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert_same(loaded, scaled_by_hand(model, family, scale))


@pytest.mark.parametrize("name", ["Mixtral", "Qwen3-MoE", "DeepSeek-V3"])
def test_experts_are_scaled_in_their_last_matrix(name, tmp_path):
    """An ablated expert's down projection is zero in the checkpoint, and only this one."""
    (architecture,) = (candidate for candidate in ARCHITECTURES if candidate.name == name)
    model = make_model(architecture)
    gated = GatedModel.wrap(model, None, name=name)
    with gated.ablated("L1E2"):
        reference = log_probabilities(model)
    write_weights(gated, changed_tensors(gated, "L1E2"), tmp_path)
    loaded = hf.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    down = loaded.get_submodule(architecture.experts.format(1)).down_proj
    assert [bool(expert.any()) for expert in down] == [True, True, False, True]
    assert torch.allclose(log_probabilities(loaded), reference, atol=1e-4)
    assert not torch.allclose(log_probabilities(model), reference, atol=1e-3)


@pytest.mark.parametrize("name", ["Mixtral", "Qwen3-MoE", "OLMoE", "DeepSeek-V3"])
def test_a_block_of_experts_is_scaled_in_all_of_them(name):
    """A scaled block scales all its experts, shared ones too; an expert in it is scaled twice."""
    (architecture,) = (candidate for candidate in ARCHITECTURES if candidate.name == name)
    model = make_model(architecture)
    gated = GatedModel.wrap(model, None, name=name)
    for components, scale in (("L1M", 0.0), ("L1M+L1E2+L0M", 0.5)):
        with gated.ablated(components, scale):
            reference = log_probabilities(model)
        written = with_tensors(model, changed_tensors(gated, components, scale))
        assert torch.allclose(log_probabilities(written), reference, atol=1e-4)
        assert not torch.allclose(log_probabilities(model), reference, atol=1e-3)


@pytest.mark.parametrize("components", ["L0H1+L2H0", "L1M", "L0A+L1M+L1H2"])
def test_mean_ablation_goes_into_the_biases(components):
    """Mean ablation in the biases equals replacing the outputs by their mean over these tokens."""
    model = FAMILIES[2].make()
    gated = GatedModel.wrap(model, None, name="gpt2")
    points = gated.gated_parts(components).points
    with captured(points) as activations:
        log_probabilities(model)
    means = {
        point: activation.flatten(0, 1).mean(0)[None] for point, activation in activations.items()
    }
    changed = changed_tensors(gated, components, means=means)

    def replaced(point):
        mean, slices = means[point][0], gated.gated_parts(components).values[0, point.columns]

        def of(activation):
            shaped = activation.unflatten(-1, (point.units, -1)).clone()
            for unit in (slices == 0).nonzero()[:, 0].tolist():
                shaped[..., unit, :] = mean.unflatten(-1, (point.units, -1))[unit]
            return shaped.flatten(-2)

        if point.place == "input":
            return point.module.register_forward_pre_hook(lambda _m, a: (of(a[0]), *a[1:]))
        return point.module.register_forward_hook(lambda _m, _a, output: of(output))

    handles = [replaced(point) for point in points]
    reference = log_probabilities(model)
    for handle in handles:
        handle.remove()
    assert torch.allclose(log_probabilities(with_tensors(model, changed)), reference, atol=1e-4)
    assert not torch.allclose(log_probabilities(model), reference, atol=1e-2)


def test_mean_ablation_without_a_bias_is_refused(tiny):
    """Mean ablation of a projection without a bias is refused."""
    points = tiny.gated_parts("L0H2").points
    means = {point: torch.zeros(1, 32) for point in points}
    with pytest.raises(UnsupportedModel, match=r"stands in for L0H2 .* which has none"):
        changed_tensors(tiny, "L0H2", means=means)


def test_a_copy_with_other_tensors_shares_the_rest():
    """A copy has the changed tensors, shares all others, and the model stays what it was."""
    model = tiny_llama()
    name = "model.layers.0.self_attn.o_proj.weight"
    before = model.get_parameter(name)
    copied = with_tensors(model, {name: before * 0})
    assert not copied.get_parameter(name).any()
    assert model.get_parameter(name) is before
    others = [other for other, _ in model.named_parameters() if other != name]
    assert all(copied.get_parameter(other) is model.get_parameter(other) for other in others)
