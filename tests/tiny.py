"""Tiny models of random weights, and their tokenizer."""

from typing import Any

CHAT = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""A chat template."""


def tokenizer_with(
    special: Any = (), *, eos: str = "<eos>", pad: str = "<bos>", merges: Any = (),
    use_regex: bool = False,
) -> Any:  # fmt: skip
    """A byte-level tokenizer of the tiny model in which some tokens are special, by their number.

    Args:
        special: Names of special tokens and their numbers, whose bytes are lost.
        eos: The end of sequence.
        pad: The padding.
        merges: Pairs that become one token, with the numbers of the last bytes.
        use_regex: Whether texts are divided into words before they are merged.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    by_number = {0: "<bos>", 1: "<eos>"} | dict(enumerate(alphabet, start=2))
    by_number |= {257 - place: first + second for place, (first, second) in enumerate(merges)}
    by_number |= {number: name for name, number in dict(special).items()}
    backend = Tokenizer(
        models.BPE(vocab={symbol: n for n, symbol in by_number.items()}, merges=list(merges))
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    backend.decoder = decoders.ByteLevel()
    more = {"additional_special_tokens": list(dict(special))} if special else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<bos>", eos_token=eos, pad_token=pad, **more
    )


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer of 258 tokens: 256 bytes, `<bos>` and `<eos>` (which also pads)."""
    return tokenizer_with(pad="<eos>", use_regex=True)


def tiny_llama(
    *, layers: int = 2, heads: int = 4, kv_heads: int = 2, context: int = 256, seed: int = 0
) -> Any:
    """A Llama model of random weights for `tiny_tokenizer`, large enough to prefer some tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=258, hidden_size=heads * max(1, 32 // heads), intermediate_size=64,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=8, max_position_embeddings=context, bos_token_id=0, eos_token_id=1,
        pad_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def save_tiny(folder: Any, model: Any = None) -> Any:
    """Saves a model, by default `tiny_llama`, with the tiny tokenizer, and returns the folder."""
    (model or tiny_llama()).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def tiny_gated(name: str = "tiny", components: str = "heads", **shape: int) -> Any:
    """A gated model of `tiny_llama` with its tokenizer."""
    from broca.models import GatedModel

    model, tokenizer = tiny_llama(**shape), tiny_tokenizer()
    return GatedModel.wrap(model, tokenizer, name=name, components=components)
