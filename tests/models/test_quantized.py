"""Quantized layers are gated at their input, whatever their weights are packed into.

torchao's eight-bit weights run on a CPU. The layers of bitsandbytes, GPTQ, AWQ and FP8 need other
hardware: stand-ins store weights in the same shapes and under the same names.
"""

import sys

import pytest
import torch
from independent import sliced
from tiny import save_tiny, tiny_llama, tiny_tokenizer
from torch import nn
from transformers import AutoModelForCausalLM, TorchAoConfig

from broca.errors import BadInput, SelfTestFailed
from broca.models import GatedModel, load, self_test
from broca.models.selftest import require_self_test

FLOATS = torch.float8_e4m3fn
PACKINGS = {
    # one column
    "bitsandbytes, four bits": (lambda w: w.reshape(-1, 1), lambda p, count: p.reshape(count, -1)),
    # integers in the shape of the weights
    "bitsandbytes, eight bits": (lambda w: w, lambda p, _: p),
    # no parameter, but a buffer with four integers in one, inputs first
    "GPTQ, AWQ": (lambda w: w.T.contiguous().view(torch.int32), lambda p, _: p.view(torch.int8).T),
    # floating-point numbers of one byte; a CPU multiplies those of four
    "FP8": (lambda w: w.float().to(FLOATS), lambda p, _: p.float()),
}
"""How a kind of layer packs integers `(outputs, inputs)`, and how they are unpacked."""


class StandIn(nn.Module):
    """A linear layer with rounded weights, packed as those of a kind."""

    def __init__(self, linear, kind="bitsandbytes, eight bits"):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.kind, self.bias = kind, None
        weight = linear.weight.detach()
        self.step = float(weight.abs().max()) / 127
        packed = PACKINGS[kind][0]((weight / self.step).round().to(torch.int8))
        if kind == "GPTQ, AWQ":
            self.register_buffer("qweight", packed)
        else:
            self.weight = nn.Parameter(packed, requires_grad=False)

    def forward(self, x):
        """Returns the output of the unpacked layer; FP8 rounds activations row by row, too."""
        if self.kind == "FP8":
            scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
            x = (x / scale).to(FLOATS).to(x) * scale
        (packed,) = self.state_dict().values()
        weight = PACKINGS[self.kind][1](packed, self.out_features)
        return nn.functional.linear(x, weight.to(x) * self.step)


def packed(kind="bitsandbytes, eight bits", model=None):
    """Returns a model whose linear layers are stand-ins of a kind."""
    model = tiny_llama() if model is None else model
    for layer in model.model.layers:
        for owner in (layer.self_attn, layer.mlp):
            for name, linear in list(owner.named_children()):
                if isinstance(linear, nn.Linear):
                    setattr(owner, name, StandIn(linear, kind))
    return model


def assert_ablated(gated, layer, head):
    """Asserts that an ablated head's logits are those of zeros in the projection's input."""
    model, tokens = gated.model, torch.arange(2, 12)[None]
    with torch.no_grad(), gated.ablated(f"L{layer}H{head}"):
        ablated = model(tokens).logits
    projection = model.model.layers[layer].self_attn.o_proj
    with torch.no_grad(), sliced(projection, 8 * head, 8 * head + 8):
        torch.testing.assert_close(ablated, model(tokens).logits)
    with torch.no_grad():
        assert (ablated - model(tokens).logits).abs().max() > 1e-3


@pytest.mark.parametrize("kind", PACKINGS)
def test_packed_weights_are_gated_and_not_zeroed(kind):
    """Packed layers are gated at their input, and the self-test leaves their weights unchanged."""
    model = packed(kind)
    gated = GatedModel.wrap(model, tiny_tokenizer(), name="packed", components="heads+mlp")
    assert [(one.path, one.head_dim) for one in gated.structure.projections] == [
        (f"model.layers.{layer}.self_attn.o_proj", 8) for layer in range(2)
    ]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    checks = self_test(gated)
    assert all(check.passed for check in checks), checks
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor.view(torch.uint8), before[name].view(torch.uint8)), name
    assert_ablated(gated, 1, 2)


def test_a_layer_that_cannot_read_zeros_is_caught():
    """A layer that divides activations by their largest fails the self-test with ablated heads."""

    class Dividing(StandIn):
        def forward(self, x):
            groups = x.reshape(*x.shape[:-1], 4, -1)
            scale = groups.abs().amax(-1, keepdim=True)
            return super().forward(((groups / scale) * scale).reshape(x.shape))

    model = tiny_llama()
    attention = model.model.layers[0].self_attn
    attention.o_proj = Dividing(attention.o_proj)
    gated = GatedModel.wrap(model, tiny_tokenizer(), name="dividing")
    with pytest.raises(SelfTestFailed, match="does not hold"):
        require_self_test(gated)


@pytest.mark.parametrize("name", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
def test_torchao_on_a_cpu(name):
    """Layers of torchao, with activations quantized or not, are ablated at their input."""
    quantization = pytest.importorskip("torchao.quantization")
    model = tiny_llama()
    quantization.quantize_(model, getattr(quantization, name)())
    assert_ablated(load(model, tiny_tokenizer(), components="heads+mlp"), 0, 3)


def test_a_checkpoint_of_torchao_is_loaded_as_it_is_stored(tmp_path):
    """A checkpoint of torchao is loaded in its stored format and gives the same logits."""
    quantization = pytest.importorskip("torchao.quantization")
    tiny_llama().save_pretrained(tmp_path / "plain")
    settings = TorchAoConfig(quantization.Int8WeightOnlyConfig())
    model = AutoModelForCausalLM.from_pretrained(
        tmp_path / "plain", quantization_config=settings, dtype=torch.float32
    )
    save_tiny(tmp_path / "packed", model)
    gated = load(str(tmp_path / "packed"), device="cpu", dtype="stored")
    assert type(gated.model.model.layers[0].self_attn.o_proj.weight) is not nn.Parameter
    tokens = torch.arange(2, 12)[None]
    with torch.no_grad():
        torch.testing.assert_close(gated.model(tokens).logits, model(tokens).logits)
    assert gated.fingerprint


@pytest.mark.parametrize("error", [None, ValueError("Install with `pip install torchao`")])
def test_without_its_library_a_checkpoint_says_what_to_install(tmp_path, monkeypatch, error):
    """It is read as stored; a missing library is an ImportError or transformers' ValueError."""
    model = tiny_llama()
    model.config.quantization_config = {"quant_method": "torchao", "quant_type": "Int8WeightOnly"}
    save_tiny(tmp_path, model)

    def fails(*args, dtype, **kwargs):
        assert dtype == "auto", "as it is stored"
        raise error

    if error is not None:
        monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fails)
    # forgets the package and every module of it that an earlier test imported
    for name in {"torchao", *(name for name in sys.modules if name.startswith("torchao."))}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BadInput, match=r"torchao.* install what its checkpoint needs"):
        load(str(tmp_path), device="cpu")
