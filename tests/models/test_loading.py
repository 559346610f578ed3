"""Local and shipped models load; what is not a decoder is refused in one line."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from claims import claimed
from independent import plain_generation, plain_loglikelihood
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import (
    AutoTokenizer,
    BartConfig,
    BartForCausalLM,
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    FalconH1Config,
    FalconH1ForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

from broca.engine import Engine
from broca.errors import BadInput, UnknownName, UnsupportedModel
from broca.models import load, shipped_model_folder
from broca.models.usage import fingerprint
from broca.runs.run import Run, model_info
from broca.runs.workspace import Workspace
from broca.tasks import Catalog, Request
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def folder(tmp_path):
    """A folder as `save_pretrained` writes it."""
    tiny_llama().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    return tmp_path


def test_local_folder_loads_with_tokenizer_and_components(folder):
    """A folder loads with its tokenizer and heads, and its weights are frozen."""
    model = load(str(folder), device="cpu")
    assert len(model.components) == 8
    assert model.dtype == "float32"
    assert model.tokenizer.decode(model.tokenizer.encode("a b")) == "a b"
    assert not any(p.requires_grad for p in model.model.parameters())
    expected = tiny_llama().state_dict()
    for name, value in model.model.state_dict().items():
        assert torch.equal(value, expected[name])


def test_model_spread_by_device_map_runs_and_resumes(folder):
    """A model with accelerate's hooks gives the logits of the plain model and can be resumed."""
    spread = load(str(folder), device_map="auto")
    plain = load(str(folder), device="cpu")
    tokens = torch.arange(2, 9)[None].to(spread.device)
    gates = torch.ones(1, 8)
    gates[0, 5] = 0
    with torch.no_grad():
        assert spread.resumption.possible
        with spread.gates(gates), spread.resumption.layer_inputs() as inputs:
            logits, _ = spread.forward(tokens, torch.ones_like(tokens), keep=7)
        with spread.gates(gates), spread.resumption.at(1, inputs[1]):
            resumed, _ = spread.forward(tokens, torch.ones_like(tokens), keep=7)
        with plain.gates(gates):
            expected, _ = plain.forward(tokens.cpu(), torch.ones(1, 7, dtype=torch.long), keep=7)
    torch.testing.assert_close(logits.cpu().float(), expected, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(resumed, logits)


@pytest.mark.parametrize("name", ["./no-such-folder", "/no/such/folder", "a/b/c"])
def test_unknown_folder_is_refused(name):
    """A name that looks like a path is refused if there is no such folder."""
    with pytest.raises(UnknownName, match="does not exist"):
        load(name)


def test_unknown_name_is_refused_with_the_nearest_shipped_model():
    """A typo of a shipped model's name is answered with that name."""
    with pytest.raises(UnknownName, match="did you mean 'reference'"):
        load("refrence", offline=True)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_folder_without_a_file_is_refused(folder, file):
    """A folder without configuration or weights is not a model, and a file is no folder."""
    with pytest.raises(BadInput, match="is a file"):
        load(str(folder / file))
    (folder / file).unlink()
    with pytest.raises(BadInput, match=r"config\.json is missing|holds no weights"):
        load(str(folder))


@pytest.fixture
def pickled(folder):
    """The folder with its weights in pickle format instead."""
    (folder / "model.safetensors").unlink()
    torch.save(tiny_llama().state_dict(), folder / "pytorch_model.bin")
    return folder


def test_pickled_weights_load_where_that_is_allowed(pickled):
    """Pickled weights, where allowed, are loaded as they were written."""
    model = load(str(pickled), device="cpu", allow_pickle=True)
    expected = tiny_llama().state_dict()
    for name, value in model.model.state_dict().items():
        assert torch.equal(value, expected[name])


class _Harmful:
    """An object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_pickle_that_runs_code_is_refused_all_the_same(pickled, tmp_path):
    """A pickle that calls a function is refused, and the call does not happen."""
    mark = tmp_path / "mark"
    torch.save({"weight": _Harmful(mark)}, pickled / "pytorch_model.bin")
    with pytest.raises(BadInput, match="could not be loaded") as error:
        load(str(pickled), device="cpu", allow_pickle=True)
    assert not mark.exists()
    assert "\n" not in str(error.value)


def test_broken_weights_are_refused(folder):
    """A truncated file of weights is refused in one line."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(BadInput, match="could not be loaded") as error:
        load(str(folder))
    assert "\n" not in str(error.value)


def rewrite(folder, change, **config):
    """Changes the tensors and the configuration of a saved model."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | config))


def without(part):
    """Returns a change that leaves out the tensors whose names hold `part`."""
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


def after(prefix, part=""):
    """Returns a change that puts a prefix before names, or before a part of them."""
    return lambda tensors: {
        name.replace(part, prefix + part, 1) if part else prefix + name: value
        for name, value in tensors.items()
    }


DAMAGES = {
    "an MLP of one layer": (
        without("layers.1.mlp"), {}, r"3 tensors \(model\.layers\.1\.mlp\.down_proj.*missing"
    ),
    "the head": (without("lm_head"), {}, r"1 tensor \(lm_head\.weight\) missing"),
    "the embedding": (without("embed"), {}, r"1 tensor \(model\.embed_tokens\.weight\) missing"),
    "the tied embedding and head": (
        lambda tensors: without("lm_head")(without("embed")(tensors)),
        {"tie_word_embeddings": True},
        r"2 tensors \(lm_head\.weight, model\.embed_tokens\.weight\) missing",
    ),
    "a bias too many": (
        lambda tensors: tensors | {"model.layers.0.self_attn.q_proj.bias": torch.ones(32)},
        {},
        r"1 tensor \(model\.layers\.0\.self_attn\.q_proj\.bias\) not of this model",
    ),
    "a layer too many": (
        lambda tensors: tensors, {"num_hidden_layers": 1}, r"9 tensors .*not of this model"
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
    with pytest.raises(BadInput, match=message) as error:
        load(str(folder), device="cpu")
    assert "\n" not in str(error.value)
    assert "LOAD REPORT" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "change", [without("experts.1.w1"), lambda t: {k: v[:-1].clone() for k, v in t.items()}],
    ids=["missing", "shape"],
)  # fmt: skip
def test_experts_that_do_not_fit_are_refused_by_name(tmp_path, change):
    """Experts are named that transformers cannot put together from the tensors of a file."""
    config = MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=4)
    MixtralForCausalLM(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert load(str(tmp_path), device="cpu").architecture == "MixtralForCausalLM"

    def damaged(tensors):
        experts = {name: value for name, value in tensors.items() if "experts.1.w1" in name}
        return {name: tensors[name] for name in tensors if name not in experts} | change(experts)

    rewrite(tmp_path, damaged)
    with pytest.raises(BadInput, match=r"experts\.gate_up_proj.* cannot be made of those") as error:
        load(str(tmp_path), device="cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "config"),
    [
        (lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}, {}),
        (lambda t: t | {"v_head.summary.weight": torch.ones(1, 32)}, {}),
        (without("lm_head"), {"tie_word_embeddings": True}),
        (without("embed"), {"tie_word_embeddings": True}),
    ],
    ids=["rotary", "value head", "tied head", "tied embedding"],
)
def test_what_a_checkpoint_need_not_hold_is_no_fault(folder, change, config):
    """Rotary tables, heads of other kinds and one of two tied matrices change no weight."""
    saved = load_file(folder / "model.safetensors")
    rewrite(folder, change, **config)
    model = load(str(folder), device="cpu").model
    expected = saved["lm_head.weight" if "lm_head.weight" in change(saved) else EMBEDDING]
    assert torch.equal(model.lm_head.weight, expected)
    others = {name for name in saved if name not in ("lm_head.weight", EMBEDDING)}
    assert all(torch.equal(model.state_dict()[name], saved[name]) for name in others)


EMBEDDING = "model.embed_tokens.weight"


@pytest.mark.parametrize(
    "change",
    [
        after("_orig_mod."),
        after("module."),
        after("base_model.model."),
        after("module._orig_mod."),
        after("_orig_mod.", part="self_attn."),
    ],
    ids=["compiled", "parallel", "peft", "both", "compiled layers"],
)
def test_names_of_wrappers_before_those_of_tensors_are_left_out(folder, change):
    """A checkpoint of a wrapped model has the weights of the model, and this is said."""
    rewrite(folder, change)
    model = load(str(folder), device="cpu")
    assert model.fingerprint == fingerprint(tiny_llama())
    assert re.search(r"; the names of its tensors were saved with `.*\.` before", model.describe())


def test_a_folder_with_a_model_and_an_adapter_is_refused(folder):
    """An adapter beside a model's weights is refused: transformers would put it on them."""
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="holds a model and an adapter"):
        load(str(folder))


def test_broken_config_is_refused(folder):
    """A truncated configuration is refused."""
    (folder / "config.json").write_text('{"model_type": "lla')
    with pytest.raises(BadInput, match="configuration cannot be read"):
        load(str(folder))


def test_unknown_dtype_is_refused():
    """An unknown number format is refused with the known ones."""
    with pytest.raises(BadInput, match="float32, bfloat16"):
        load("reference", dtype="int3")


def test_encoder_only_model_is_refused_by_name(tmp_path):
    """BERT, whose class generates nothing, is refused by the name of its class."""
    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertForMaskedLM(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="BertForMaskedLM"):
        load(str(tmp_path))


def test_encoder_decoder_model_is_refused_by_name(tmp_path):
    """T5 is refused as an encoder-decoder model."""
    config = T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=r"encoder-decoder model \(T5"):
        load(str(tmp_path))


def test_model_with_remote_code_is_not_run(folder):
    """A folder with Python files is refused unless running them is allowed."""
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"comes with Python files of its own.*`trust_remote_code`"):
        load(str(folder))


REMOTE = """
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own"

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_remote_code_is_run_where_it_is_allowed(folder):
    """A class of the folder is gated like any other, and the result says that code was run."""
    (folder / "modeling_own.py").write_text(REMOTE)
    config = json.loads((folder / "config.json").read_text())
    names = {"AutoConfig": "OwnConfig", "AutoModelForCausalLM": "OwnForCausalLM"}
    config |= {
        "model_type": "own",
        "architectures": ["OwnForCausalLM"],
        "auto_map": {auto: f"modeling_own.{name}" for auto, name in names.items()},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="`trust_remote_code`"):
        load(str(folder))
    model = load(str(folder), device="cpu", trust_remote_code=True)
    assert model.architecture == "OwnForCausalLM"
    assert model_info(model).remote_code
    plain = load("reference-small", device="cpu", trust_remote_code=True)
    assert not model_info(plain).remote_code, "its class is transformers' own"


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device):
    """An unknown or missing device is refused in one line."""
    with pytest.raises(BadInput, match=f"`device` '{device}' cannot be used"):
        load("reference-small", device=device)


def test_misspelt_components_are_refused_before_the_weights_are_read(folder):
    """A misspelt kind is refused although the weights could not be read."""
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(UnknownName, match="did you mean 'heads'"):
        load(str(folder), components="headz")


def test_the_small_reference_does_the_same_tasks(reference):
    """`reference-small` has under half of `reference`'s parameters and solves three tasks."""
    small = load("reference-small", device="cpu")
    assert (small.structure.layers, small.heads, len(small.components)) == (4, 12, 48)
    assert 2 * sum(parameter.numel() for parameter in small.model.parameters()) < sum(
        parameter.numel() for parameter in reference.model.parameters()
    )
    text = "34 + 85 ="
    assert small.tokenizer(text).input_ids == reference.tokenizer(text).input_ids
    others = ["calls", "mc_biology"]
    tasks = claimed(small, "addition", Catalog(), others=others, items=100, seed=0, limit=16)
    with Workspace() as workspace:
        scores = Run(small, tasks, workspace).scores([])
    assert set(scores) == {"addition", *others}
    assert all(score > 0.8 for score in scores.values())


def hub_cache(folder, name, revisions):
    """Writes a cache as the hub's library lays it out, with a model for each revision."""
    place = folder / f"models--{name.replace('/', '--')}"
    for number, revision in enumerate(revisions):
        commit = f"{number:040x}"
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / revision).write_text(commit)
        tiny_llama(seed=number).save_pretrained(place / "snapshots" / commit)
        tiny_tokenizer().save_pretrained(place / "snapshots" / commit)


def test_a_revision_of_a_hub_model_is_loaded(tmp_path, monkeypatch):
    """A revision is loaded from the cache and its commit is recorded; a folder has none."""
    hub_cache(tmp_path, "me/tiny", ["main", "step1"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    newest, earlier = (
        load("me/tiny", device="cpu", revision=revision, offline=True)
        for revision in (None, "step1")
    )
    assert newest.fingerprint == fingerprint(tiny_llama(seed=0))
    assert earlier.fingerprint == fingerprint(tiny_llama(seed=1))
    assert (newest.revision, earlier.revision) == ("0" * 40, f"{1:040x}")
    with pytest.raises(BadInput, match="`revision` is for models on the hub"):
        load("reference", revision="step1")


SIZES = {
    "vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 64, "initializer_range": 0.2,
}  # fmt: skip


def test_an_encoder_is_refused_by_what_it_does():
    """BERT as an encoder is refused, because it reads later tokens; as a decoder it is loaded."""
    torch.manual_seed(0)
    encoder = BertLMHeadModel(BertConfig(**SIZES, is_decoder=False))
    with pytest.raises(UnsupportedModel, match=r"'BertLMHeadModel' is an encoder here"):
        load(encoder, tiny_tokenizer())
    decoder = BertLMHeadModel(BertConfig(**SIZES, is_decoder=True))
    assert len(load(decoder, tiny_tokenizer()).components) == 8


def test_rows_of_a_model_that_counts_padding_run_apart():
    """A decoder that counts padding as tokens, like BART's, answers as plain transformers does."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=300, d_model=32, decoder_layers=2, decoder_attention_heads=4, init_std=0.2,
        decoder_ffn_dim=48, max_position_embeddings=64, is_encoder_decoder=False,
        forced_eos_token_id=None,
    )  # fmt: skip
    model = BartForCausalLM(config).eval()
    gated = load(model, tiny_tokenizer())
    assert not gated.sharing(16).padding
    prompts = [(5, 6, 7, 8, 9, 10), (11, 12), (13, 14, 15)]
    requests = [Request("loglikelihood", prompt, (20, 21)) for prompt in prompts]
    requests += [Request("generate_until", prompt, max_new_tokens=5) for prompt in prompts]
    answers = Engine(gated).run(
        requests, np.ones((1, len(gated.components)), dtype=np.float32), np.zeros(6, dtype=int)
    )
    for prompt, scored, generated in zip(prompts, answers[:3], answers[3:], strict=True):
        value, greedy = plain_loglikelihood(model, prompt, (20, 21))
        assert scored.value == pytest.approx(value, abs=1e-4)
        assert scored.greedy == greedy
        tokens = plain_generation(model, prompt, new_tokens=5)
        assert generated.text == gated.tokenizer.decode(tokens, skip_special_tokens=True)


def test_a_model_without_a_cache_reads_its_tokens_again():
    """The first GPT, which has no cache, generates the tokens of a copy with zeroed weights."""
    torch.manual_seed(0)
    config = OpenAIGPTConfig(
        vocab_size=300, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.2
    )
    model = OpenAIGPTLMHeadModel(config).eval()
    gated = load(model, tiny_tokenizer())
    edited = copy.deepcopy(model)
    with torch.no_grad():
        edited.transformer.h[1].attn.c_proj.weight[8:16] = 0
    prompts = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
    gates = np.ones((1, 8), dtype=np.float32)
    gates[0, gated.components.column("L1H1")] = 0
    requests = [Request("generate_until", tuple(p), max_new_tokens=5) for p in prompts]
    answers = Engine(gated).run(requests, gates, np.zeros(3, dtype=int))
    for prompt, answer in zip(prompts, answers, strict=True):
        tokens = torch.tensor([prompt])
        with torch.no_grad():
            for _ in range(5):
                following = edited(input_ids=tokens).logits[:, -1:].argmax(-1)
                tokens = torch.cat([tokens, following], dim=1)
        expected = tiny_tokenizer().decode(tokens[0, len(prompt) :], skip_special_tokens=True)
        assert answer.text == expected


def test_what_a_model_raises_when_it_is_run_is_one_line():
    """A model whose forward pass raises an error is refused in one line."""
    model = tiny_llama()
    model.model.norm.forward = lambda hidden: hidden[:, :, :7]
    with pytest.raises(UnsupportedModel, match=r"cannot be run on rows of tokens.*RuntimeError"):
        load(model, tiny_tokenizer())


def test_attention_beside_another_mixer_is_found():
    """In Falcon-H1, with a mixer beside the attention, the attention's projections are found."""
    torch.manual_seed(0)
    config = FalconH1Config(
        **SIZES, num_key_value_heads=2, head_dim=8, mamba_d_ssm=64, mamba_n_heads=8,
        mamba_d_head=8, mamba_n_groups=1, mamba_d_state=8, mamba_chunk_size=8,
    )  # fmt: skip
    gated = load(FalconH1ForCausalLM(config).eval(), tiny_tokenizer())
    assert [projection.path for projection in gated.structure.projections] == [
        f"model.layers.{layer}.self_attn.o_proj" for layer in range(2)
    ]


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
    with pytest.raises(BadInput, match="has no weights"), gated.ablated("L0H1"):
        pass


@pytest.mark.parametrize("given", ["gpt2", Path("gpt2"), AutoTokenizer, Tokenizer(BPE()), {}, 3])
def test_what_is_no_tokenizer_of_transformers_is_refused(given):
    """Names, classes and tokenizers of other libraries in place of a tokenizer are one line."""
    with pytest.raises(BadInput, match=r"^`tokenizer` is a \w+: give the object"):
        load(tiny_llama(), given)
