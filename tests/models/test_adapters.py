"""Models with PEFT adapters, merged or not, give PEFT's logits and have gates."""

import json

import peft
import pytest
import torch
from independent import sliced, zeroed_by_hand
from models.test_loading import assert_refused
from safetensors.torch import load_file, save_file
from tiny import save_tiny, tiny_llama, tiny_tokenizer

from broca.errors import BadInput, UnknownName, UnsupportedModel
from broca.models import load, self_test
from broca.runs.run import model_info

TOKENS = torch.arange(2, 12)[None]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with a tiny base model."""
    return save_tiny(tmp_path_factory.mktemp("base"))


def adapted(model=None, *, method=peft.LoraConfig, seed=0, **changes):
    """Returns PEFT's model with an adapter of random weights."""
    settings = {
        "target_modules": ["q_proj", "o_proj", "down_proj"], "task_type": "CAUSAL_LM",
        **({"r": 4, "init_lora_weights": False} if method is peft.LoraConfig else {}),
    }  # fmt: skip
    torch.manual_seed(seed)
    return peft.get_peft_model(model or tiny_llama(), method(**settings | changes)).eval()


def adapter(base, folder, model=None, **changes):
    """Saves an adapter with random weights and returns PEFT's adapted model."""
    model = adapted(model, **changes)
    model.peft_config["default"].base_model_name_or_path = str(base)
    model.save_pretrained(folder)
    return model


def logits(model, tokens=TOKENS):
    """Returns the logits of a transformers model."""
    with torch.no_grad():
        return model(input_ids=tokens).logits


@pytest.mark.parametrize(
    "added", [{}, {"modules_to_save": ["embed_tokens"]}, {"trainable_token_indices": [259]}]
)
@pytest.mark.parametrize("merge", [True, False])
def test_a_folder_with_an_adapter_is_its_base_with_it(base, tmp_path, merge, added):
    """Logits are PEFT's, of added tokens too, and a gated head equals zeroed columns."""
    model = tiny_llama()
    model.resize_token_embeddings(260 if added else 258)
    expected = adapter(base, tmp_path, model, **added)
    gated = load(str(tmp_path), device="cpu", components="heads+mlp", merge_adapter=merge)
    assert all(check.passed for check in self_test(gated))
    asked = torch.tensor([[*range(2, 12), gated.vocabulary - 1]])
    found = logits(gated.model, asked)
    torch.testing.assert_close(found, logits(expected, asked), atol=1e-5, rtol=1e-5)
    assert (logits(expected)[..., :258] - logits(tiny_llama())).abs().max() > 1e-2
    edited = zeroed_by_hand(expected.merge_and_unload(), [(1, 2)])
    with gated.ablated("L1H2"):
        ablated = logits(gated.model)
    torch.testing.assert_close(ablated, logits(edited), atol=1e-5, rtol=1e-5)
    state = "merged" if merge else "not merged"
    assert model_info(gated).adapter == f"LORA adapter {tmp_path} on {base}, {state}"
    assert any("lora" in name for name, _ in gated.model.named_modules()) != merge
    assert gated.tokenizer.decode(gated.tokenizer.encode("a b")) == "a b"


@pytest.mark.parametrize(
    "changes",
    [
        {
            "method": peft.IA3Config, "target_modules": ["o_proj", "down_proj"],
            "feedforward_modules": ["down_proj"], "init_ia3_weights": False,
        },
        {"use_dora": True}, {"target_modules": ["embed_tokens", "o_proj"]},
        {"trainable_token_indices": [3, 4]},
    ],
    ids=["IA3", "DoRA", "of embeddings", "of single tokens"],
)  # fmt: skip
def test_other_methods_are_gated_beside_their_base(changes):
    """A gate acts on the shared input of the base's matrix and of the adapter; no weight changes.

    PEFT's model keeps no hook.
    """
    model = adapted(**changes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gated = load(model, tiny_tokenizer())
    assert gated.architecture == "LlamaForCausalLM"
    method = model.peft_config["default"].peft_type.value
    told = f"{method} adapter default in memory on its base, not merged"
    assert model_info(gated).adapter == told
    with gated.ablated("L0H1"):
        ablated = logits(gated.model)
    assert not any(module._forward_pre_hooks for module in model.modules())
    with sliced(model.get_base_model().model.layers[0].self_attn.o_proj, 8, 16):
        torch.testing.assert_close(ablated, logits(model), atol=1e-6, rtol=1e-5)
    assert (logits(model) - ablated).abs().max() > 1e-3
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("", r"lacks 12 tensors \(base_model"),
        ("layers.1", r"lacks 6 tensors \(base_model.*layers\.1"),
        ("lm_head", r"could not be put on .*lm_head\.weight"),
    ],
    ids=["all", "a layer", "a saved module"],
)
def test_an_adapter_without_its_tensors_is_refused(base, tmp_path, part, fault):
    """Tensors of an adapter that are missing or that fit nowhere are named."""
    adapter(base, tmp_path, **{"modules_to_save": ["lm_head"]} if part == "lm_head" else {})
    load(str(tmp_path), device="cpu")
    file = tmp_path / "adapter_model.safetensors"
    tensors = load_file(file)
    save_file({name: value for name, value in tensors.items() if part not in name}, file)
    assert_refused(tmp_path, fault)
    save_file(tensors | {"base_model.model.model.layers.9.lora_A.weight": torch.ones(2)}, file)
    assert_refused(tmp_path, r"has no place for 1 tensors \(base_model.*layers\.9")


@pytest.mark.parametrize("merge", [True, False])
def test_an_adapter_of_an_adapter_is_both(base, tmp_path, merge):
    """An adapter whose base is an adapter has the logits of both, as in PEFT."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    stored = adapter(base, inner).merge_and_unload()
    both = adapter(inner, outer, stored, seed=3, r=2, target_modules=["v_proj", "o_proj"])
    gated = load(str(outer), device="cpu", merge_adapter=merge)
    torch.testing.assert_close(logits(gated.model), logits(both), atol=1e-5, rtol=1e-5)
    assert gated.adapter.startswith(f"LORA adapter {outer} on {inner}")
    configure(inner, base_model_name_or_path=str(outer))
    assert_refused(outer, "names itself as its base")


def configure(folder, **changes):
    """Changes the configuration of a saved adapter."""
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_relative_base_is_found_from_the_adapter(base, tmp_path, monkeypatch):
    """A base is looked for from the working directory, then from the adapter's folder.

    The layers of the adapter share projections, which its file has once.
    """
    (tmp_path / "base").symlink_to(base)
    expected = adapter("../base", tmp_path / "adapter", method=peft.VeraConfig, init_weights=False)
    monkeypatch.chdir(base)
    gated = load(str(tmp_path / "adapter"), device="cpu")
    torch.testing.assert_close(logits(gated.model), logits(expected), atol=1e-5, rtol=1e-5)


def test_what_is_no_adapter_of_weights_is_refused(base, tmp_path):
    """Learned prompts, a missing or other base and unreadable configurations are refused."""
    prompt = peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
    with pytest.raises(UnsupportedModel, match="puts learned tokens before the prompt"):
        load(peft.get_peft_model(tiny_llama(), prompt), tiny_tokenizer())
    adapter(base, tmp_path)
    for other, error, message in (
        ("./nowhere", UnknownName, r"'\./nowhere' does not exist"),
        ("reference-small", BadInput, "could not be put on 'reference-small'"),
        (None, BadInput, r"adapter_config\.json"),
    ):
        configure(tmp_path, base_model_name_or_path=other)
        with pytest.raises(error, match=message):
            load(str(tmp_path))
    for text in ("{", "{}"):
        (tmp_path / "adapter_config.json").write_text(text)
        assert_refused(tmp_path, r"adapter_config\.json")


def test_an_adapter_is_no_way_around_pickle(base, tmp_path):
    """Weights of an adapter in pickle format need `allow_pickle`, as those of its base do."""
    adapter(base, tmp_path)
    safe = tmp_path / "adapter_model.safetensors"
    torch.save(load_file(safe), tmp_path / "adapter_model.bin")
    safe.unlink()
    assert_refused(tmp_path, r"adapter_model\.bin' are in pickle format")
    load(str(tmp_path), device="cpu", allow_pickle=True)


def test_an_adapter_s_patterns_have_a_time_limit(base, tmp_path, monkeypatch):
    """An endless pattern of names of modules is ended with a line."""
    adapter(base, tmp_path)
    configure(tmp_path, target_modules=r"(([a-z_.0-9])+)+!")
    monkeypatch.setattr("broca.models.checkpoints._ADAPTER_S", 0.5)
    assert_refused(tmp_path, r"took more than 0\.5 s")
