"""Local and shipped models load; what is not a decoder is refused in one line."""

import json
import re
from pathlib import Path

import pytest
import torch
import transformers
from claims import claimed
from models.architectures import BY_NAME, make_model
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny import save_tiny, tiny_llama, tiny_tokenizer
from torch import nn
from transformers import BertConfig, BertLMHeadModel, T5Config

from broca import Workspace, export, load
from broca.errors import BadInput, OutOfMemory, UnknownName, UnsupportedModel
from broca.models.checkpoints import shipped_model_folder
from broca.models.usage import fingerprint
from broca.runs.run import Run, model_info


def assert_refused(folder, message, **options):
    """Asserts that a folder is refused with a message."""
    with pytest.raises(BadInput, match=message):
        load(str(folder), device="cpu", **options)


SIZES = {
    "vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 64, "initializer_range": 0.2,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder as `save_pretrained` writes it."""
    return save_tiny(tmp_path)


@pytest.mark.parametrize("how", ["plain", "device map", "pickled"])
def test_a_folder_loads_as_it_was_written(folder, how):
    """A folder loads with its tokenizer, its heads and its weights, which are frozen."""
    if how == "pickled":
        (folder / "model.safetensors").unlink()
        torch.save(tiny_llama().state_dict(), folder / "pytorch_model.bin")
    options = {"plain": {"device": "cpu"}, "device map": {"device_map": "auto"}}
    model = load(str(folder), **options.get(how, {"device": "cpu", "allow_pickle": True}))
    assert len(model.components) == 8
    assert model.tokenizer.decode(model.tokenizer.encode("a b")) == "a b"
    assert not any(p.requires_grad for p in model.model.parameters())
    expected = tiny_llama().state_dict()
    for name, value in model.model.state_dict().items():
        assert torch.equal(value.cpu(), expected[name].to(value.dtype))


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("./no-such-folder", {}, UnknownName, "does not exist"),
        ("a/b/c", {}, UnknownName, "does not exist"),
        ("refrence", {"offline": True}, UnknownName, "did you mean 'reference'"),
        ("reference", {"dtype": "int3"}, BadInput, "float32, bfloat16"),
        (str(Path(__file__)), {}, BadInput, "is a file"),
        ("reference", {"revision": "step1"}, BadInput, "`revision` is for models on the hub"),
        ("reference", {"device": "nonsense"}, BadInput, "`device` 'nonsense' cannot be used"),
        ("reference", {"device": "cuda:99"}, BadInput, "`device` 'cuda:99' cannot be used"),
    ],
)
def test_what_names_no_model_is_refused(name, options, error, message):
    """Names of no model, and options that no model takes, are refused in one line."""
    with pytest.raises(error, match=message) as refusal:
        load(name, **options)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, r"configuration cannot be read.*config\.json"),
        ("config.json", b'{"model_type": "lla', "configuration cannot be read"),
        ("config.json", b'{"model_type": "llama", "hidden_size": "abc"}', "cannot be read"),
        ("config.json", b"null", "cannot be read"),
        ("config.json", b'{"model_type": "evil", "auto_map": {"AutoConfig": "evil.C"}}',
         r"comes with Python files of its own.*`trust_remote_code`"),
        ("model.safetensors", None, r"no file named model\.safetensors"),
        ("model.safetensors", bytes(1000), "could not be loaded"),
        ("config.json", b'{"model_type": "llama", "attn_implementation": "evil/kernel"}',
         r"code on the hub \(evil/kernel\), which is never run"),
        ("config.json", b'{"model_type": "gemma3", "attn_implementation": {"text_config": "a/b"}}',
         r"code on the hub \(a/b\)"),
        ("adapter_config.json", b"{}", "holds a model and an adapter"),
        ("tokenizer.json", None, r"backend tokenizer from one of: \(1\)"),
        ("tokenizer_config.json", b'{"auto_map": {"AutoTokenizer": ["evil.C", null]}}', "trust_re"),
    ],
)  # fmt: skip
def test_a_folder_with_a_damaged_file_is_refused(folder, file, content, message):
    """A file that is missing, damaged or too many is named in one line; no code is run."""
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    assert_refused(folder, message)


T5 = T5Config(d_model=32, d_kv=8, d_ff=32, num_layers=1)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("BertForMaskedLM", BertConfig(**SIZES), "BertForMaskedLM"),
        ("T5ForConditionalGeneration", T5, r"encoder-decoder model \(T5"),
        ("BertLMHeadModel", BertConfig(**SIZES), "'BertLMHeadModel' is an encoder here"),
    ],
)
def test_what_is_no_decoder_is_refused_by_name(tmp_path, name, config, message):
    """Encoders and encoder-decoders are refused by their class, in a folder and in memory."""
    model = getattr(transformers, name)(config)
    save_tiny(tmp_path, model)
    with pytest.raises(UnsupportedModel, match=message):
        load(str(tmp_path), device="cpu")
    with pytest.raises(UnsupportedModel, match=message):
        load(model, tiny_tokenizer())


class _Harmful:
    """An object whose unpickling writes a file."""

    def __reduce__(self):
        return (open, ("mark", "w"))


def test_pickle_that_runs_code_is_refused_all_the_same(folder, monkeypatch):
    """A pickle that calls a function is refused, and the call does not happen."""
    monkeypatch.chdir(folder)
    (folder / "model.safetensors").unlink()
    torch.save({"weight": _Harmful()}, folder / "pytorch_model.bin")
    assert_refused(folder, "could not be loaded", allow_pickle=True)
    assert not (folder / "mark").exists()


def rewrite(folder, change, **config):
    """Changes the tensors and the configuration of a saved model."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | config))


def without(part):
    """Returns a change that leaves out the tensors whose names hold `part`."""
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


def after(prefix):
    """Returns a change that puts a prefix before all names."""
    return lambda tensors: {prefix + name: value for name, value in tensors.items()}


DAMAGES = {
    "the head": (without("lm_head"), {}, r"1 tensor \(lm_head\.weight\) missing"),
    "the tied embedding and head": (
        lambda tensors: without("lm_head")(without("embed")(tensors)),
        {"tie_word_embeddings": True},
        r"2 tensors \(lm_head\.weight, model\.embed_tokens\.weight\) missing",
    ),
    "a bias too many": (
        lambda tensors: tensors | {"model.layers.0.self_attn.q_proj.bias": torch.ones(32)}, {},
        r"1 tensor \(model\.layers\.0\.self_attn\.q_proj\.bias\) not of this model",
    ),
    "another width": (
        lambda tensors: tensors, {"intermediate_size": 40},
        r"6 tensors \(.*down_proj\.weight \(32, 64\) instead of \(32, 40\).*of another shape",
    ),
    "a layer after a wrapper's name": (
        lambda tensors: after("module.")(without("layers.1.mlp")(tensors)), {},
        r"3 tensors \(model\.layers\.1\.mlp.*missing.*`module\.` before them",
    ),
}  # fmt: skip
"""Changes to a saved model, and what is said of them."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_that_does_not_fit_is_refused(folder, damage, capfd):
    """Tensors that are missing, left over or of another shape are named in one line."""
    change, config, message = DAMAGES[damage]
    rewrite(folder, change, **config)
    assert_refused(folder, message)
    assert "LOAD REPORT" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "change", [without("experts.1.w1"), lambda t: {k: v[:-1].clone() for k, v in t.items()}],
    ids=["missing", "shape"],
)  # fmt: skip
def test_experts_that_do_not_fit_are_refused_by_name(tmp_path, change):
    """Experts are named that transformers cannot put together from the tensors of a file."""
    save_tiny(tmp_path, make_model(BY_NAME["Mixtral"]))
    assert load(str(tmp_path), device="cpu").architecture == "MixtralForCausalLM"

    def damaged(tensors):
        experts = {name: value for name, value in tensors.items() if "experts.1.w1" in name}
        return without("experts.1.w1")(tensors) | change(experts)

    rewrite(tmp_path, damaged)
    assert_refused(tmp_path, r"experts\.gate_up_proj.* cannot be made of those")


@pytest.mark.parametrize(
    ("change", "tied"),
    [
        (lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}, False),
        (lambda t: t | {"v_head.summary.weight": torch.ones(1, 32)}, False),
        (without("lm_head"), True),
        (without("embed"), True),
    ],
    ids=["rotary", "value head", "tied head", "tied embedding"],
)
def test_what_a_checkpoint_need_not_hold_is_no_fault(folder, change, tied):
    """Rotary tables, heads of other kinds and one of two tied matrices change no weight."""
    stored = change(load_file(folder / "model.safetensors"))
    rewrite(folder, change, tie_word_embeddings=tied)
    loaded = load(str(folder), device="cpu").model.state_dict()
    assert all(torch.equal(loaded[name], stored[name]) for name in loaded.keys() & stored.keys())
    if tied:
        assert torch.equal(loaded["lm_head.weight"], loaded["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    "change",
    [
        after("base_model.model."),
        after("module._orig_mod."),
        lambda t: {name.replace("self_attn", "_orig_mod.self_attn"): t[name] for name in t},
    ],
    ids=["peft", "parallel and compiled", "compiled layers"],
)
def test_names_of_wrappers_before_those_of_tensors_are_left_out(folder, change):
    """A checkpoint of a wrapped model has the weights of the model, and this is said."""
    rewrite(folder, change)
    model = load(str(folder), device="cpu")
    assert model.fingerprint == fingerprint(tiny_llama())
    assert re.search(r"; the names of its tensors were saved with `.*\.` before", model.describe())


REMOTE = """
from transformers import LlamaConfig, LlamaForCausalLM
class OwnConfig(LlamaConfig): model_type = "own"
class OwnForCausalLM(LlamaForCausalLM): config_class = OwnConfig
"""


def test_remote_code_is_run_where_it_is_allowed(folder, tmp_path):
    """A class of the folder is gated and exported like any other, and results say that it ran."""
    (folder / "modeling_own.py").write_text(REMOTE)
    names = {"AutoConfig": "OwnConfig", "AutoModelForCausalLM": "OwnForCausalLM"}
    auto_map = {auto: f"modeling_own.{name}" for auto, name in names.items()}
    rewrite(folder, dict, model_type="own", architectures=["OwnForCausalLM"], auto_map=auto_map)
    model = load(str(folder), device="cpu", trust_remote_code=True)
    assert model.architecture == "OwnForCausalLM"
    assert model_info(model).remote_code
    assert export(model, tmp_path / "out", heads="L0H1", kind="weights").reloaded.prompts == 32
    plain = load("reference-small", device="cpu", trust_remote_code=True)
    assert not model_info(plain).remote_code, "its class is transformers' own"


def test_the_small_reference_does_the_same_tasks(reference, small):
    """`reference-small` has under half of `reference`'s parameters and solves three tasks."""
    assert (small.structure.layers, small.heads) == (4, 12)
    sizes = [sum(p.numel() for p in one.model.parameters()) for one in (small, reference)]
    assert 2 * sizes[0] < sizes[1]
    others = ["calls", "mc_biology"]
    tasks = claimed(small, "addition", others=others, items=100, seed=0, limit=16)
    with Workspace() as workspace:
        scores = Run(small, tasks, workspace).scores([])
    assert set(scores) == {"addition", *others}
    assert min(scores.values()) > 0.8


def hub_cache(folder, monkeypatch, *revisions):
    """Writes the hub's cache with a model for each revision of `me/tiny`."""
    place = folder / "models--me--tiny"
    (place / "refs").mkdir(parents=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    for seed, revision in enumerate(revisions):
        commit = f"{seed:040x}"
        (place / "refs" / revision).write_text(commit)
        save_tiny(place / "snapshots" / commit, tiny_llama(seed=seed))


def test_a_revision_of_a_hub_model_is_loaded(tmp_path, monkeypatch):
    """A revision is loaded from the hub's cache, and its commit is recorded."""
    hub_cache(tmp_path, monkeypatch, "main", "step1")
    for seed, revision in enumerate((None, "step1")):
        model = load("me/tiny", device="cpu", revision=revision, offline=True)
        assert model.fingerprint == fingerprint(tiny_llama(seed=seed))
        assert model.revision == f"{seed:040x}"


def test_an_encoder_class_may_be_a_decoder():
    """BERT as a decoder, which reads no later tokens, is loaded."""
    decoder = BertLMHeadModel(BertConfig(**SIZES, is_decoder=True))
    assert len(load(decoder, tiny_tokenizer()).components) == 8


def test_what_a_model_raises_when_it_is_run_is_one_line(folder, monkeypatch):
    """A model that does not fit the device, or whose forward pass fails, is refused in one line."""
    with monkeypatch.context() as patch:
        patch.setattr(nn.Module, "to", lambda *_: torch.empty(2**60))
        with pytest.raises(OutOfMemory, match="does not fit the memory of the device"):
            load(str(folder), device="cpu")
    model = tiny_llama()
    model.model.norm.forward = lambda hidden: hidden[:, :, :7]
    with pytest.raises(UnsupportedModel, match=r"cannot be run on rows of tokens.*RuntimeError"):
        load(model, tiny_tokenizer())


@pytest.mark.parametrize("dtype", ["auto", "stored"])
def test_shipped_models_are_stored_in_half_and_loaded_to_float32(dtype):
    """Shipped weights are stored in float16 and loaded as float32."""
    with safe_open(shipped_model_folder("reference-small") / "model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}  # noqa: SIM118
    assert load("reference-small", device="cpu", dtype=dtype).dtype == "float32"


def test_a_model_without_weights_is_refused():
    """A model on `meta` is refused in one line; also if it is moved later."""
    with pytest.raises(BadInput, match="has no weights"):
        load(tiny_llama().to("meta"), tiny_tokenizer())
    gated = load(tiny_llama(), tiny_tokenizer())
    gated.model.to("meta")
    with pytest.raises(BadInput, match="has no weights"):
        gated.generate("ab")


@pytest.mark.parametrize(
    ("file", "message"),
    [("weights.bin", "in pickle format"), ("../other/model.safetensors", "of another folder")],
)
def test_an_index_names_no_pickle_and_no_other_folder(folder, file, message):
    """A file that an index names is read by the same rules as the others."""
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    weights.unlink()
    torch.save(tensors, folder / "weights.bin")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(tensors, file)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert_refused(folder, message)
