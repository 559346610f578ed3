"""Tiny models of eight architectures to export, and their ablation written by hand.

Paths and widths are written down here and not taken from broca.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
import transformers as hf
from models.architectures import BY_NAME, HEADS, LAYERS, make_model

from broca.models import GatedModel


def gated(name):
    """Returns a tiny gated model of an architecture in the tests' list."""
    return GatedModel.wrap(make_model(BY_NAME[name]), None, name=name)


@dataclass(frozen=True)
class Family:
    """An architecture to export, and the paths of its ablated projections.

    Attributes:
        what: Property that it stands for.
        make: Makes the model.
        projection: Path of layer {}'s attention output projection.
        down: Path of layer {}'s last MLP projection; None for routed experts.
    """

    what: str
    make: object
    projection: str
    down: str | None

    def components(self, form):
        """Names of two heads of the first layer, one of the last, and an MLP block if possible."""
        mlp = "" if self.down is None or form == "heads" else "+L1M"
        return f"L0H1+L0H2+L{LAYERS - 1}H0{mlp}"


def _family(what, name, **changes):
    known = replace(BY_NAME[name], changes=changes or BY_NAME[name].changes)
    return Family(what, lambda: make_model(known), known.projection, known.down)


def _vision_language():
    text = {
        "vocab_size": 120, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": 16,
        "sliding_window": 16, "max_position_embeddings": 128, "initializer_range": 0.2,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": 28, "patch_size": 14,
    }  # fmt: skip
    config = hf.Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=119,
        boi_token_index=117, eoi_token_index=118,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return hf.AutoModelForImageTextToText.from_config(config).eval()


FAMILIES = (
    _family("grouped queries", "Qwen3"),
    _family("fused QKV", "Phi-3"),
    _family("Conv1D with biases", "GPT-2"),
    _family("mixture of experts", "Qwen3-MoE"),
    _family("latent attention", "DeepSeek-V3"),
    _family("parallel MLP", "GPT-NeoX"),
    _family("tied weights", "Llama", tie_word_embeddings=True),
    Family(
        "vision-language", _vision_language,
        "model.language_model.layers.{}.self_attn.o_proj",
        "model.language_model.layers.{}.mlp.down_proj",
    ),
)  # fmt: skip
"""All vocabularies hold the tokens 0 to 109, of which none stands for an image."""

TOKENS = torch.tensor([[3, 14, 15, 92, 65, 35, 89, 79], [32, 38, 46, 26, 43, 38, 32, 79]])


@torch.no_grad()
def scaled_by_hand(model, family, form, scale):
    """Returns a copy of a model whose `family.components(form)` are scaled in the weights."""
    model = copy.deepcopy(model)
    transposed = type(model).__name__ == "GPT2LMHeadModel"
    for layer, heads in ((0, (1, 2)), (LAYERS - 1, (0,))):
        weight = model.get_submodule(family.projection.format(layer)).weight
        columns = weight if transposed else weight.T
        width = len(columns) // HEADS
        for head in heads:
            columns[head * width : (head + 1) * width] *= scale
    if "M" in family.components(form):
        down = model.get_submodule(family.down.format(1))
        down.weight *= scale
        if getattr(down, "bias", None) is not None:
            down.bias *= scale
    return model


@torch.no_grad()
def log_probabilities(model):
    """Returns the log-probabilities of a few tokens, `(rows, tokens, vocabulary)`."""
    return model(input_ids=TOKENS).logits.log_softmax(-1)


def assert_same(model, reference, *, within=1e-4):
    """Asserts that two models give finite log-probabilities that agree."""
    assert torch.isfinite(log_probabilities(model)).all()
    difference = (log_probabilities(model) - log_probabilities(reference)).abs().max()
    assert difference < within, float(difference)
