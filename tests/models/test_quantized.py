"""Quantized layers are gated at their input, whatever their weights are packed into.

torchao's eight-bit weights run on a CPU. The layers of bitsandbytes, GPTQ, AWQ and FP8 need other
hardware: stand-ins store weights in the same shapes and under the same names.
"""

import sys

import pytest
import torch
from independent import sliced
from torch import nn
from transformers import AutoModelForCausalLM, TorchAoConfig

from broca.errors import BadInput, SelfTestFailed
from broca.models import GatedModel, load, require_self_test, self_test
from broca.testing import tiny_llama, tiny_tokenizer


class StandIn(nn.Module):
    """A linear layer with rounded weights."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach()
        self.step = float(weight.abs().max()) / 127
        self.bias = None
        self.pack((weight / self.step).round().to(torch.int8))

    def pack(self, rounded):
        """Stores rounded weights `(outputs, inputs)` as one column, as bitsandbytes' four bits."""
        self.weight = nn.Parameter(rounded.reshape(-1, 1), requires_grad=False)

    def unpacked(self):
        """Returns the rounded weights, `(outputs, inputs)`."""
        return self.weight.reshape(self.out_features, self.in_features)

    def forward(self, x):
        """Returns the output of the unpacked layer."""
        return nn.functional.linear(x, self.unpacked().to(x) * self.step)


class EightBit(StandIn):
    """bitsandbytes' eight bits: integers in the shape of the weights."""

    def pack(self, rounded):
        """Stores the weights in their shape."""
        self.weight = nn.Parameter(rounded, requires_grad=False)


class Buffers(StandIn):
    """GPTQ and AWQ: no parameter, but a buffer with four integers in one, inputs first."""

    def pack(self, rounded):
        """Stores the weights in a buffer."""
        self.register_buffer("qweight", rounded.T.contiguous().view(torch.int32))

    def unpacked(self):
        """Returns the weights of the buffer."""
        return self.qweight.view(torch.int8).T


class EightBitFloats(StandIn):
    """FP8: weights as floating-point numbers of one byte, activations rounded row by row."""

    def pack(self, rounded):
        """Stores the weights as bytes; `forward` multiplies with their scale."""
        self.weight = nn.Parameter(rounded.float().to(torch.float8_e4m3fn), requires_grad=False)

    def unpacked(self):
        """Returns the weights in float32, which a CPU multiplies."""
        return self.weight.float()

    def forward(self, x):
        """Returns the output for activations that are rounded to eight bits."""
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
        return super().forward((x / scale).to(torch.float8_e4m3fn).to(x) * scale)


KINDS = {
    "bitsandbytes, four bits": StandIn,
    "bitsandbytes, eight bits": EightBit,
    "GPTQ, AWQ": Buffers,
    "FP8": EightBitFloats,
}


def packed(kind):
    """Returns a model whose linear layers are stand-ins of a kind."""
    model = tiny_llama()
    for layer in model.model.layers:
        for owner in (layer.self_attn, layer.mlp):
            for name, linear in list(owner.named_children()):
                if isinstance(linear, nn.Linear):
                    setattr(owner, name, kind(linear))
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


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
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
    model.save_pretrained(tmp_path / "packed")
    tiny_tokenizer().save_pretrained(tmp_path / "packed")
    gated = load(str(tmp_path / "packed"), device="cpu", dtype="stored")
    assert type(gated.model.model.layers[0].self_attn.o_proj.weight) is not nn.Parameter
    tokens = torch.arange(2, 12)[None]
    with torch.no_grad():
        torch.testing.assert_close(gated.model(tokens).logits, model(tokens).logits)
    assert gated.fingerprint


@pytest.mark.parametrize("error", [None, ValueError("Install with `pip install torchao`")])
def test_without_its_library_a_checkpoint_says_what_to_install(tmp_path, monkeypatch, error):
    """A missing library is said, whether it is an ImportError or transformers' ValueError."""
    model = tiny_llama()
    model.config.quantization_config = {"quant_method": "torchao", "quant_type": "Int8WeightOnly"}
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)

    def fails(*args, **kwargs):
        raise error

    if error is not None:
        monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fails)
    # forgets the package and every module of it that an earlier test imported
    for name in {"torchao", *(name for name in sys.modules if name.startswith("torchao."))}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BadInput, match=r"torchao.* install what its checkpoint needs"):
        load(str(tmp_path), device="cpu")
