"""Tiny random-weight models of many architectures, and the paths of their parts.

The paths are written by hand: broca must find the same by structure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

VOCABULARY = 120
HIDDEN, HEADS, KV_HEADS, LAYERS = 64, 4, 2, 3


@dataclass(frozen=True)
class Architecture:
    """An architecture, and the paths of its parts.

    Attributes:
        name: Name that users know.
        config: Makes the configuration of a tiny model.
        projection: Path of layer {}'s attention output projection.
        down: Path of the last projection of layer {}'s MLP block; None for routed experts.
        experts: Path of layer {}'s routed experts; None if it has none.
        attention_layers: Layers that have attention heads; all by default.
        remark: Remark in the documentation.
        kv_heads: Number of key/value heads.
        norm: Path of layer {}'s norm over all heads before the projection; None if it has none.
    """

    name: str
    config: Callable[[], Any]
    projection: str
    down: str | None
    experts: str | None = None
    attention_layers: tuple[int, ...] = tuple(range(LAYERS))
    remark: str = ""
    kv_heads: int = KV_HEADS
    norm: str | None = None


def _llama_like(config: str, **changes: Any) -> Callable[[], Any]:
    """Returns a maker of a configuration with Llama's field names."""

    def make() -> Any:
        values = {
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "intermediate_size": 96,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "max_position_embeddings": 128,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "initializer_range": 0.2,
        }
        return getattr(hf, config)(**{**values, **changes})

    return make


def _other(config: str, **values: Any) -> Callable[[], Any]:
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return lambda: getattr(hf, config)(**{"vocab_size": VOCABULARY, **special, **values})


_DOWN = "model.layers.{}.mlp.down_proj"
_O_PROJ = "model.layers.{}.self_attn.o_proj"
_DENSE = "model.layers.{}.self_attn.dense"
_GPT_SIZES = {"n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 128}
_MOE = "model.layers.{}.mlp.experts"
_NORM_AFTER = "a norm follows the projection; the heads are cut before both"

ARCHITECTURES = (
    Architecture("Llama", _llama_like("LlamaConfig"), _O_PROJ, _DOWN),
    Architecture("Mistral", _llama_like("MistralConfig"), _O_PROJ, _DOWN),
    Architecture("Qwen2", _llama_like("Qwen2Config"), _O_PROJ, _DOWN),
    Architecture(
        "Qwen3", _llama_like("Qwen3Config", head_dim=24), _O_PROJ, _DOWN,
        remark="head_dim differs from hidden / heads",
    ),
    Architecture(
        "Gemma 2", _llama_like("Gemma2Config", head_dim=16), _O_PROJ, _DOWN, remark=_NORM_AFTER
    ),
    Architecture(
        "Gemma 3 (text)", _llama_like("Gemma3TextConfig", head_dim=16, sliding_window=16),
        _O_PROJ, _DOWN, remark=_NORM_AFTER,
    ),
    Architecture("Phi", _llama_like("PhiConfig"), _DENSE, "model.layers.{}.mlp.fc2"),
    Architecture("Phi-3", _llama_like("Phi3Config"), _O_PROJ, _DOWN, remark="fused QKV"),
    Architecture("OLMo 2", _llama_like("Olmo2Config"), _O_PROJ, _DOWN, remark=_NORM_AFTER),
    Architecture("StableLM", _llama_like("StableLmConfig"), _O_PROJ, _DOWN),
    Architecture("Cohere", _llama_like("CohereConfig"), _O_PROJ, _DOWN, remark="parallel MLP"),
    Architecture("Granite", _llama_like("GraniteConfig"), _O_PROJ, _DOWN),
    Architecture(
        "StarCoder2", _llama_like("Starcoder2Config"), _O_PROJ, "model.layers.{}.mlp.c_proj"
    ),
    Architecture("SmolLM3", _llama_like("SmolLM3Config"), _O_PROJ, _DOWN),
    Architecture("GLM", _llama_like("GlmConfig", head_dim=16), _O_PROJ, _DOWN, remark="fused MLP"),
    Architecture("Nemotron", _llama_like("NemotronConfig"), _O_PROJ, _DOWN),
    Architecture("EXAONE 4", _llama_like("Exaone4Config", sliding_window=16), _O_PROJ, _DOWN),
    Architecture(
        "BitNet", _llama_like("BitNetConfig"), _O_PROJ, _DOWN,
        norm="model.layers.{}.self_attn.attn_sub_norm",
        remark="a norm mixes the heads before the projection: they are gated at its input",
    ),
    Architecture(
        "GPT-2", _other("GPT2Config", **_GPT_SIZES, initializer_range=0.2),
        "transformer.h.{}.attn.c_proj", "transformer.h.{}.mlp.c_proj", kv_heads=HEADS,
        remark="Conv1D: weights are transposed",
    ),
    Architecture(
        "GPT-NeoX / Pythia",
        _other(
            "GPTNeoXConfig", hidden_size=HIDDEN, intermediate_size=96, num_hidden_layers=LAYERS,
            num_attention_heads=HEADS, max_position_embeddings=128, initializer_range=0.2,
        ),
        "gpt_neox.layers.{}.attention.dense", "gpt_neox.layers.{}.mlp.dense_4h_to_h",
        kv_heads=HEADS, remark="parallel MLP",
    ),
    Architecture(
        "GPT-J", _other("GPTJConfig", **_GPT_SIZES, rotary_dim=8, initializer_range=0.2),
        "transformer.h.{}.attn.out_proj", "transformer.h.{}.mlp.fc_out", kv_heads=HEADS,
        remark="parallel MLP",
    ),
    Architecture(
        "OPT",
        _other(
            "OPTConfig", hidden_size=HIDDEN, ffn_dim=96, num_hidden_layers=LAYERS,
            num_attention_heads=HEADS, max_position_embeddings=128, word_embed_proj_dim=HIDDEN,
            init_std=0.2,
        ),
        "model.decoder.layers.{}.self_attn.out_proj", "model.decoder.layers.{}.fc2", kv_heads=HEADS,
    ),
    Architecture(
        "BLOOM",
        _other(
            "BloomConfig", hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, initializer_range=0.2
        ),
        "transformer.h.{}.self_attention.dense", "transformer.h.{}.mlp.dense_4h_to_h",
        kv_heads=HEADS, remark="ALiBi positions",
    ),
    Architecture(
        "Falcon (old decoder)",
        _other(
            "FalconConfig", hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            initializer_range=0.2,
        ),
        "transformer.h.{}.self_attention.dense", "transformer.h.{}.mlp.dense_4h_to_h",
        kv_heads=1, remark="multi-query attention, parallel MLP",
    ),
    Architecture(
        "Falcon (new decoder)",
        _other(
            "FalconConfig", hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            new_decoder_architecture=True, num_kv_heads=KV_HEADS, initializer_range=0.2,
        ),
        "transformer.h.{}.self_attention.dense", "transformer.h.{}.mlp.dense_4h_to_h",
        remark="parallel MLP",
    ),
    Architecture(
        "MPT", _other("MptConfig", d_model=HIDDEN, n_layers=LAYERS, n_heads=HEADS, max_seq_len=128),
        "transformer.blocks.{}.attn.out_proj", "transformer.blocks.{}.ffn.down_proj",
        kv_heads=HEADS, remark="ALiBi positions",
    ),
    Architecture(
        "GPT-BigCode / StarCoder", _other("GPTBigCodeConfig", **_GPT_SIZES, initializer_range=0.2),
        "transformer.h.{}.attn.c_proj", "transformer.h.{}.mlp.c_proj", kv_heads=1,
        remark="multi-query attention",
    ),
    Architecture(
        "Mixtral", _llama_like("MixtralConfig", num_local_experts=4), _O_PROJ, None, _MOE,
        remark="mixture of experts",
    ),
    Architecture(
        "Qwen3-MoE",
        _llama_like(
            "Qwen3MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
            head_dim=16,
        ),
        _O_PROJ, None, _MOE, remark="mixture of experts",
    ),
    Architecture(
        "OLMoE", _llama_like("OlmoeConfig", num_experts=4, num_experts_per_tok=2), _O_PROJ, None,
        _MOE, remark="mixture of experts",
    ),
    Architecture(
        "DeepSeek-V3",
        _llama_like(
            "DeepseekV3Config", num_key_value_heads=HEADS, n_routed_experts=4, n_group=1,
            topk_group=1, num_experts_per_tok=2, kv_lora_rank=16, q_lora_rank=16,
            qk_rope_head_dim=8, v_head_dim=12, qk_nope_head_dim=16, moe_intermediate_size=32,
            first_k_dense_replace=0,
        ),
        _O_PROJ, None, _MOE, kv_heads=HEADS,
        remark="latent attention: the width of a head is that of its values",
    ),
    Architecture(
        "Bamba (hybrid)",
        _llama_like(
            "BambaConfig", attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16,
            mamba_chunk_size=8, mamba_d_state=8,
        ),
        _O_PROJ, "model.layers.{}.feed_forward.down_proj", attention_layers=(1,),
        remark="Mamba layers have no heads and are listed as not covered",
    ),
    Architecture(
        "Qwen3-Next (hybrid)",
        _llama_like(
            "Qwen3NextConfig", head_dim=16, num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=32, shared_expert_intermediate_size=32,
            linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
            linear_value_head_dim=8,
            layer_types=["linear_attention", "full_attention", "linear_attention"],
        ),
        _O_PROJ, None, _MOE, attention_layers=(1,),
        remark="gated attention; linear-attention layers are listed as not covered",
    ),
    Architecture(
        "Jamba (hybrid)",
        _llama_like(
            "JambaConfig", attn_layer_period=3, attn_layer_offset=1, num_experts=1,
            num_experts_per_tok=1, use_mamba_kernels=False, mamba_d_state=8, mamba_dt_rank=8,
        ),
        _O_PROJ, "model.layers.{}.feed_forward.down_proj", attention_layers=(1,),
        remark="Mamba layers have no heads and are listed as not covered",
    ),
)  # fmt: skip


def make_model(architecture: Architecture) -> Any:
    """Returns the tiny model, with biases and norm weights moved from their neutral values."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = hf.AutoModelForCausalLM.from_config(architecture.config()).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 1:  # biases and norm weights
                    parameter.add_(0.1 * torch.randn_like(parameter))
                elif "mpt" in type(model).__name__.lower():
                    parameter.mul_(5)
                assert torch.isfinite(parameter).all(), name
    return model
