"""Tiny random-weight models of many architectures, and the paths of their parts.

The paths are written by hand: broca must find the same by structure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers as hf

VOCABULARY = 120
HIDDEN, HEADS, KV_HEADS, LAYERS = 64, 4, 2, 3

_COMMON = {
    "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "initializer_range": 0.2,
}  # fmt: skip
_NEOX = {
    "hidden_size": HIDDEN, "intermediate_size": 96, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "max_position_embeddings": 128,
}  # fmt: skip
_LLAMA = _NEOX | {"num_key_value_heads": KV_HEADS}
_GPT = {"n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 128}
_FALCON = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}

_DOWN = "model.layers.{}.mlp.down_proj"
_O_PROJ = "model.layers.{}.self_attn.o_proj"


@dataclass(frozen=True)
class Architecture:
    """An architecture, and the paths of its parts.

    Attributes:
        name: Name that users know.
        config: Class of its configuration.
        changes: Fields of the configuration besides `sizes`.
        sizes: Its sizes, under the names of its family.
        projection: Path of layer {}'s attention output projection.
        down: Path of the last projection of layer {}'s MLP block; None for routed experts.
        experts: Path of layer {}'s routed experts; None if it has none.
        attention_layers: Layers that have attention heads; all by default.
        kv_heads: Number of key/value heads.
        norm: Path of layer {}'s norm over all heads before the projection; None if it has none.
    """

    name: str
    config: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=lambda: _LLAMA)
    projection: str = _O_PROJ
    down: str | None = _DOWN
    experts: str | None = None
    attention_layers: tuple[int, ...] = tuple(range(LAYERS))
    kv_heads: int = KV_HEADS
    norm: str | None = None


_MIXTURE = {"down": None, "experts": "model.layers.{}.mlp.experts"}
_MOE = {"num_experts": 4, "num_experts_per_tok": 2}
_OF_GPT = {
    "sizes": _GPT, "projection": "transformer.h.{}.attn.c_proj",
    "down": "transformer.h.{}.mlp.c_proj",
}  # fmt: skip
_OF_FALCON = {
    "sizes": _FALCON, "projection": "transformer.h.{}.self_attention.dense",
    "down": "transformer.h.{}.mlp.dense_4h_to_h",
}  # fmt: skip
_HYBRID = {"attention_layers": (1,), "down": "model.layers.{}.feed_forward.down_proj"}

ARCHITECTURES = (
    Architecture("Llama", "LlamaConfig"),
    Architecture("Mistral", "MistralConfig"),
    Architecture("Qwen2", "Qwen2Config"),
    Architecture("Qwen3", "Qwen3Config", {"head_dim": 24}),
    Architecture("Gemma 2", "Gemma2Config", {"head_dim": 16}),
    Architecture("Gemma 3 (text)", "Gemma3TextConfig", {"head_dim": 16, "sliding_window": 16}),
    Architecture(  # its last layer reads the keys and values of the one before
        "Gemma 4 (text)", "Gemma4TextConfig",
        {
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "head_dim": 16, "global_head_dim": 16, "num_global_key_value_heads": KV_HEADS,
            "attention_k_eq_v": True, "sliding_window": 16, "num_kv_shared_layers": 1,
            "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCABULARY,
        },
    ),
    Architecture(
        "Phi", "PhiConfig", projection="model.layers.{}.self_attn.dense",
        down="model.layers.{}.mlp.fc2",
    ),
    Architecture("Phi-3", "Phi3Config"),
    Architecture("OLMo 2", "Olmo2Config"),
    Architecture("StableLM", "StableLmConfig"),
    Architecture("Cohere", "CohereConfig"),
    Architecture("Granite", "GraniteConfig"),
    Architecture("StarCoder2", "Starcoder2Config", down="model.layers.{}.mlp.c_proj"),
    Architecture("SmolLM3", "SmolLM3Config"),
    Architecture("GLM", "GlmConfig", {"head_dim": 16}),
    Architecture("Nemotron", "NemotronConfig"),
    Architecture("EXAONE 4", "Exaone4Config", {"sliding_window": 16}),
    Architecture("BitNet", "BitNetConfig", norm="model.layers.{}.self_attn.attn_sub_norm"),
    Architecture("GPT-2", "GPT2Config", kv_heads=HEADS, **_OF_GPT),
    Architecture(
        "GPT-NeoX", "GPTNeoXConfig", {}, _NEOX, "gpt_neox.layers.{}.attention.dense",
        "gpt_neox.layers.{}.mlp.dense_4h_to_h", kv_heads=HEADS,
    ),
    Architecture(
        "GPT-J", "GPTJConfig", {"rotary_dim": 8}, _GPT, "transformer.h.{}.attn.out_proj",
        "transformer.h.{}.mlp.fc_out", kv_heads=HEADS,
    ),
    Architecture(
        "OPT", "OPTConfig", {"ffn_dim": 96, "word_embed_proj_dim": HIDDEN, "init_std": 0.2},
        _FALCON | {"max_position_embeddings": 128}, "model.decoder.layers.{}.self_attn.out_proj",
        "model.decoder.layers.{}.fc2", kv_heads=HEADS,
    ),
    Architecture(
        "BLOOM", "BloomConfig", {"n_layer": LAYERS, "n_head": HEADS}, kv_heads=HEADS,
        **_OF_FALCON | {"sizes": {"hidden_size": HIDDEN}},
    ),
    Architecture("Falcon (old decoder)", "FalconConfig", kv_heads=1, **_OF_FALCON),
    Architecture(
        "Falcon (new decoder)", "FalconConfig",
        {"new_decoder_architecture": True, "num_kv_heads": KV_HEADS}, **_OF_FALCON,
    ),
    Architecture(
        "MPT", "MptConfig", {"initializer_range": 0.02},
        {"d_model": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "max_seq_len": 128},
        "transformer.blocks.{}.attn.out_proj", "transformer.blocks.{}.ffn.down_proj",
        kv_heads=HEADS,
    ),
    Architecture("GPT-BigCode", "GPTBigCodeConfig", kv_heads=1, **_OF_GPT),
    Architecture("Mixtral", "MixtralConfig", {"num_local_experts": 4}, **_MIXTURE),
    Architecture(
        "Qwen3-MoE", "Qwen3MoeConfig", _MOE | {"moe_intermediate_size": 32, "head_dim": 16},
        **_MIXTURE,
    ),
    Architecture("OLMoE", "OlmoeConfig", _MOE, **_MIXTURE),
    Architecture(
        "DeepSeek-V3", "DeepseekV3Config",
        {
            "num_key_value_heads": HEADS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
            "num_experts_per_tok": 2, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
            "v_head_dim": 12, "qk_nope_head_dim": 16, "moe_intermediate_size": 32,
            "first_k_dense_replace": 0,
        },
        kv_heads=HEADS, **_MIXTURE,
    ),
    Architecture(
        "Bamba", "BambaConfig",
        {
            "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 16,
            "mamba_chunk_size": 8, "mamba_d_state": 8,
        },
        **_HYBRID,
    ),
    Architecture(
        "Qwen3-Next", "Qwen3NextConfig",
        _MOE | {
            "head_dim": 16, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
            "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        },
        attention_layers=(1,), **_MIXTURE,
    ),
    Architecture(
        "Jamba", "JambaConfig",
        {
            "attn_layer_period": 3, "attn_layer_offset": 1, "num_experts": 1,
            "num_experts_per_tok": 1, "use_mamba_kernels": False, "mamba_d_state": 8,
            "mamba_dt_rank": 8,
        },
        **_HYBRID,
    ),
)  # fmt: skip

BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}


def make_model(architecture: Architecture) -> Any:
    """Returns the tiny model, with biases and norm weights moved from their neutral values."""
    values = {**_COMMON, **architecture.sizes, **architecture.changes}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = getattr(hf, architecture.config)(**values)
        model = hf.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 1:  # biases and norm weights
                    parameter.add_(0.1 * torch.randn_like(parameter))
                elif "mpt" in type(model).__name__.lower():
                    parameter.mul_(5)
                assert torch.isfinite(parameter).all(), name
    return model
