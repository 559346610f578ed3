"""Fingerprints of weights, and the identity of models."""

import peft
import pytest
import torch

from broca.models import load
from broca.models.usage import fingerprint
from broca.testing import tiny_llama, tiny_tokenizer


def test_weights_and_their_number_format_make_the_fingerprint():
    """The smallest change of one weight counts, and the format, which may be another one."""
    model, stored = tiny_llama(), tiny_llama().bfloat16()
    weight = model.model.layers[1].self_attn.o_proj.weight
    weight.data[3, 3] = torch.nextafter(weight.data[3, 3], torch.tensor(9.0))
    assert len({fingerprint(one) for one in (tiny_llama(), model, stored)}) == 3
    cast = fingerprint(stored, dtype=torch.float32)
    assert cast == fingerprint(stored.float())


@pytest.fixture
def adapted():
    """A model of PEFT in memory with two adapters, and broca's model of it."""
    settings = {"r": 2, "target_modules": ["o_proj"], "init_lora_weights": False}
    model = peft.get_peft_model(tiny_llama(), peft.LoraConfig(**settings))
    model.add_adapter("other", peft.LoraConfig(**settings))
    return model, load(model, tiny_tokenizer())


CHANGES = {
    "rope": lambda model: model.config.rope_parameters.update(rope_theta=500.0),
    "window": lambda model: setattr(model.config, "sliding_window", 4),
    "generation": lambda model: setattr(model.generation_config, "repetition_penalty", 1.5),
    "attention": lambda model: model.set_attn_implementation("eager"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_an_answer_changes_the_identity(change):
    """Configuration, settings for generation and implementation are part of the identity."""
    model = tiny_llama()
    gated = load(model, tiny_tokenizer())
    before, weights = gated.identity, gated.fingerprint
    CHANGES[change](model)
    assert gated.identity != before
    assert gated.fingerprint == weights


@pytest.mark.parametrize(
    "change", [{"chat_template": "{{ messages }}"}, {"eos_token": "a"}, {"add_bos_token": True}]
)
def test_the_tokenizer_changes_the_identity(change):
    """The chat template, the special tokens and the settings of a tokenizer are part of it."""
    tokenizer = tiny_tokenizer()
    gated = load(tiny_llama(), tokenizer)
    before = gated.identity
    tokenizer(["a", "a b"], padding=True, truncation=True, max_length=4)
    assert gated.identity == before, "a call changes how the next one pads"
    for name, value in change.items():
        setattr(tokenizer, name, value)
    assert gated.identity != before


def test_active_adapters_change_the_identity(adapted):
    """Adapters that are switched off, chosen or scaled give another model; back, the same."""
    model, gated = adapted
    before = gated.identity
    with model.disable_adapter():
        off = gated.identity
    assert gated.identity == before
    model.set_adapter("other")
    other = gated.identity
    model.set_adapter("default")
    assert gated.identity == before
    for module in model.modules():
        if hasattr(module, "scale_layer"):
            module.scale_layer(0.5)
    assert len({before, off, other, gated.identity}) == 4


def test_the_place_of_a_model_is_not_part_of_its_identity(tmp_path):
    """Two folders with the same files have the same identity, whatever saved them."""
    identities = set()
    for name in ("one", "two"):
        model = tiny_llama()
        model.config.use_cache = name == "one"
        model.save_pretrained(tmp_path / name)
        tiny_tokenizer().save_pretrained(tmp_path / name)
        identities.add(load(str(tmp_path / name), device="cpu").identity)
    assert len(identities) == 1
