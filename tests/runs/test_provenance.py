"""The description of the model in results."""

from dataclasses import replace

from broca.models import GatedModel
from broca.runs.run import model_info
from broca.testing import tiny_llama, tiny_tokenizer


def test_a_model_is_described_by_its_shape_and_its_weights(tiny):
    """Equal weights under another name have the same fingerprint; changed weights have another."""
    info = model_info(tiny)
    assert (info.name, info.layers, info.heads, info.kv_heads) == ("tiny", 2, 4, 2)
    assert (info.architecture, info.dtype) == ("LlamaForCausalLM", "float32")
    renamed = model_info(GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="other"))
    assert replace(renamed, name="tiny") == info
    changed = tiny_llama()
    changed.lm_head.weight.data[0, 0] += 1
    again = GatedModel.wrap(changed, tiny_tokenizer(), name="tiny")
    assert model_info(again).fingerprint != info.fingerprint
