"""A GGUF file is the model that a folder with the same weights is; what would be lost is refused."""

import shutil
import sys

import numpy as np
import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from broca.cli import main
from broca.errors import BadInput, MissingExtra, UnknownName, UnsupportedModel
from broca.models import load
from broca.testing import tiny_llama, tiny_tokenizer

gguf = pytest.importorskip("gguf", reason="the extra gguf is not installed")

LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
TEMPLATE = "{% for message in messages %}[{{ message.content }}]{% endfor %}"


def write(path, model=None, *, architecture="llama", lost=(), more=(), **metadata):
    """Writes a Llama model as llama.cpp's converter does, with some tensors left out or added."""
    model = tiny_llama() if model is None else model
    config, writer = model.config, gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    tokens = tiny_tokenizer().convert_ids_to_tokens(range(258))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 258)
    writer.add_token_types([3, 3] + [1] * 256)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    for key, value in metadata.items():
        getattr(writer, f"add_{key}")(value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    tensors = {
        names.get_name(name, try_suffixes=(".weight",)): (name, weights.detach().numpy())
        for name, weights in model.named_parameters()
    }
    for short, (name, weights) in tensors.items():
        if "q_proj" in name or "k_proj" in name:  # llama.cpp rotates neighbouring dimensions
            heads = len(weights) // config.head_dim
            weights = weights.reshape(heads, 2, -1, config.hidden_size).swapaxes(1, 2)
        if short not in lost:
            shape = [*model.get_parameter(name).shape]
            writer.add_tensor(short, np.ascontiguousarray(weights).reshape(shape))
    for name, weights in dict(more).items():
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def file(tmp_path):
    """A GGUF file of `tiny_llama`, alone in its folder."""
    return write(tmp_path / "tiny.gguf")


@pytest.mark.parametrize("scaling", [None, LLAMA_3], ids=["plain", "Llama 3"])
def test_a_file_is_the_same_model_as_a_folder(tmp_path, scaling):
    """A file, and a folder with it alone, give the folder's logits to the bit, and its digests."""
    model, more = tiny_llama(context=16384), {}
    if scaling is not None:
        model.config.rope_parameters = scaling
        model = type(model)(model.config)
        plain = 500000.0 ** -(np.arange(0, 8, 2) / 8)
        scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](model.config, "cpu")
        more = {"rope_freqs.weight": (plain / scaled.numpy()).astype(np.float32)}
    model.save_pretrained(tmp_path / "folder")
    tiny_tokenizer().save_pretrained(tmp_path / "folder")
    (tmp_path / "files").mkdir()
    path = write(tmp_path / "files" / "tiny.gguf", model, more=more)
    expected = load(str(tmp_path / "folder"), device="cpu")
    for name in (path, path.parent):
        loaded = load(name, device="cpu")
        tokens = torch.arange(2, 250)[None]
        assert torch.equal(loaded.model(tokens).logits, expected.model(tokens).logits)
        assert loaded.fingerprint == expected.fingerprint
        assert loaded.tokenizer.encode("a b") == expected.tokenizer.encode("a b")
        assert loaded.tokenizer.apply_chat_template([{"content": "x"}], tokenize=False) == "[x]"
