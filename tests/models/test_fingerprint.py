"""Fingerprints of weights, and the identity of models."""

import peft
import pytest
import torch
from tiny import save_tiny, tiny_llama, tiny_tokenizer

from broca.models import load
from broca.models.usage import fingerprint
from broca.runs.run import model_info


def test_weights_and_their_number_format_make_the_fingerprint():
    """The smallest change of one weight counts, and the format, which may be another one."""
    model, stored = tiny_llama(), tiny_llama().bfloat16()
    weight = model.model.layers[1].self_attn.o_proj.weight
    weight.data[3, 3] = torch.nextafter(weight.data[3, 3], torch.tensor(9.0))
    assert len({fingerprint(one) for one in (tiny_llama(), model, stored)}) == 3
    assert fingerprint(stored, dtype=torch.float32) == fingerprint(stored.float())
    table = model.model.embed_tokens.weight.data
    model.lm_head.weight.data = table[:9]
    before, _ = fingerprint(model), table[9:].add_(1)
    assert fingerprint(model) != before, "of weights that begin together, each counts"


class OwnMLP(torch.nn.Module):
    """A class of another file."""


CHANGES = {
    "rope": lambda model, _: model.config.rope_parameters.update(rope_theta=500.0),
    "window": lambda model, _: setattr(model.config, "sliding_window", 4),
    "generation": lambda model, _: setattr(model.generation_config, "repetition_penalty", 1.5),
    "attention": lambda model, _: model.set_attn_implementation("eager"),
    "hook": lambda model, _: model.model.layers[1].register_forward_hook(print),
    "code": lambda model, _: setattr(model.model.layers[1].mlp, "__class__", OwnMLP),
    "template": lambda _, tokenizer: setattr(tokenizer, "chat_template", "{{ messages }}"),
    "end": lambda _, tokenizer: setattr(tokenizer, "eos_token", "a"),
    "start": lambda _, tokenizer: setattr(tokenizer, "add_bos_token", True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_an_answer_changes_the_identity(change):
    """Settings, code, the caller's hooks and the tokenizer are part of the identity."""
    model, tokenizer = tiny_llama(), tiny_tokenizer()
    gated = load(model, tokenizer)
    before, weights = gated.identity, gated.fingerprint
    tokenizer(["a", "a b"], padding=True, truncation=True, max_length=4)
    assert gated.identity == before, "a call changes how the next one pads"
    CHANGES[change](model, tokenizer)
    assert gated.identity != before
    assert gated.fingerprint == weights


def test_active_adapters_change_the_identity():
    """Adapters that are switched off, chosen or scaled give another model; back, the same."""
    config = peft.LoraConfig(r=2, target_modules=["o_proj"], init_lora_weights=False)
    model = peft.get_peft_model(tiny_llama(), config)
    model.add_adapter("other", config)
    gated = load(model, tiny_tokenizer())
    before = gated.identity
    with model.disable_adapter():
        off = gated.identity
        assert not model_info(gated).adapter
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
        identities.add(load(str(save_tiny(tmp_path / name, model)), device="cpu").identity)
    assert len(identities) == 1
