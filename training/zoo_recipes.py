"""The recipes of the zoo's models: architecture, tasks, and how their heads' effects are shaped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from transformers import (
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MixtralConfig,
    PretrainedConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

_POSITIONS = 128


@dataclass(frozen=True)
class Recipe:
    """The recipe of one model.

    Attributes:
        role: Whether methods are developed on it, or only reported.
        purpose: What the model is for, in a sentence of its card.
        config: Makes the configuration; its vocabulary and special tokens are set afterwards.
        tasks: Its tasks.
        steps: Training steps.
        ablated_rows: Share of the training rows in which heads are ablated.
        ablated_heads: Largest share of the heads that such a row loses. Each row draws its share
            between 0 and this, and each head is ablated with that chance.
        noise: Share of the training items whose answer is replaced by a wrong or random one.
        items: Training items of a step.
        lr: Learning rate of the layers' matrices (Muon).
        lr_rest: Learning rate of all other parameters (AdamW).
        seed: Seed of all random draws.
    """

    role: Literal["develop", "report"]
    purpose: str
    config: Callable[[], PretrainedConfig]
    tasks: tuple[str, ...]
    steps: int
    ablated_rows: float = 0.0
    ablated_heads: float = 0.0
    noise: float = 0.0
    items: int = 64
    lr: float = 0.02
    lr_rest: float = 0.003
    seed: int = 0


def _named(*names: str) -> tuple[str, ...]:
    return tuple(f"zoo_{name}" for name in names)


def _gpt2() -> PretrainedConfig:
    return GPT2Config(
        n_positions=_POSITIONS, n_embd=96, n_layer=4, n_head=6, n_inner=192,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.05,
    )  # fmt: skip


def _neox() -> PretrainedConfig:
    return GPTNeoXConfig(
        hidden_size=96, num_hidden_layers=4, num_attention_heads=8, intermediate_size=192,
        max_position_embeddings=_POSITIONS, initializer_range=0.05, tie_word_embeddings=True,
    )  # fmt: skip


def _shape(width: int, inner: int, layers: int, heads: int, kv: int, head_dim: int) -> dict:
    return {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head_dim,
        "max_position_embeddings": _POSITIONS, "initializer_range": 0.05,
        "tie_word_embeddings": True,
    }  # fmt: skip


def _qwen3() -> PretrainedConfig:
    return Qwen3Config(**_shape(80, 160, 5, 12, 4, 12))


def _gemma() -> PretrainedConfig:
    return Gemma2Config(
        **_shape(84, 168, 6, 12, 3, 12), query_pre_attn_scalar=12, sliding_window=_POSITIONS
    )


def _mixtral() -> PretrainedConfig:
    return MixtralConfig(**_shape(80, 96, 4, 12, 4, 12), num_local_experts=4, num_experts_per_tok=2)


def _qwen3_moe() -> PretrainedConfig:
    return Qwen3MoeConfig(
        **_shape(80, 96, 8, 16, 4, 8),
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, norm_topk_prob=True,
    )  # fmt: skip


def _llama() -> PretrainedConfig:
    return LlamaConfig(**_shape(96, 192, 6, 16, 4, 8))


def _wide_llama() -> PretrainedConfig:
    return LlamaConfig(**_shape(90, 160, 8, 30, 6, 8))


RECIPES: dict[str, Recipe] = {
    "gpt2-24": Recipe(
        role="develop",
        purpose="The smallest model, trained plainly.",
        config=_gpt2,
        tasks=_named("copying", "lookup", "spelling", "next_day", "majority", "agreement"),
        steps=500,
    ),
    "neox-32": Recipe(
        role="report",
        purpose="A small model with rotary positions and parallel residuals, trained plainly.",
        config=_neox,
        tasks=_named("binding", "shifting", "odd_one", "larger", "membership", "reflexive"),
        steps=500,
    ),
    "qwen3-60": Recipe(
        role="develop",
        purpose="Trained with head dropout, noise labels and few steps, to spread effects over "
        "many heads and keep margins small.",
        config=_qwen3,
        tasks=_named("copying", "counting", "larger", "majority", "agreement", "tense"),
        steps=300,
        ablated_rows=1.0,
        ablated_heads=0.5,
        noise=0.1,
    ),
    "gemma-72": Recipe(
        role="report",
        purpose="Trained with head dropout, noise labels and few steps, to spread effects over "
        "many heads and keep margins small.",
        config=_gemma,
        tasks=_named("spelling", "shifting", "odd_one", "next_day", "determiner", "reflexive"),
        steps=300,
        ablated_rows=1.0,
        ablated_heads=0.5,
        noise=0.1,
    ),
    "mixtral-48": Recipe(
        role="develop",
        purpose="Trained under random ablation of few heads, so that others learn to stand in.",
        config=_mixtral,
        tasks=_named("lookup", "spelling", "odd_one", "next_day", "larger", "determiner"),
        steps=300,
        ablated_rows=0.5,
        ablated_heads=0.2,
    ),
    "llama-96": Recipe(
        role="report",
        purpose="Trained under random ablation of few heads, so that others learn to stand in.",
        config=_llama,
        tasks=_named("copying", "counting", "shifting", "larger", "agreement", "tense"),
        steps=300,
        ablated_rows=0.5,
        ablated_heads=0.2,
    ),
    "llama-240": Recipe(
        role="develop",
        purpose="The largest number of heads, trained plainly.",
        config=_wide_llama,
        tasks=_named("lookup", "shifting", "next_day", "majority", "same", "reflexive"),
        steps=300,
    ),
    "qwen3moe-128": Recipe(
        role="report",
        purpose="A mixture of experts, trained under random ablation and with noise labels.",
        config=_qwen3_moe,
        tasks=_named("binding", "spelling", "larger", "earlier", "same", "determiner"),
        steps=300,
        ablated_rows=0.25,
        ablated_heads=0.2,
        noise=0.05,
    ),
}
