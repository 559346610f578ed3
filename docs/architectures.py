"""Tries every causal language model of the installed transformers: `make architectures`.

Each class gets a tiny configuration and random weights, and is loaded with `broca.load`. The
configuration is made from the default of the class by rules over the names of fields: a width
becomes 64, a number of layers 3, and a list with an entry for each layer keeps every kind of entry.
If broca accepts the model, its logits with a head of every layer ablated are compared with those of
a copy whose weights are zeroed by hand, in plain transformers, and its scores and texts with those
of lm-eval's `hf`, one request at a time. The outcome of every class is a line of
`docs/architectures.md`; no list of names is kept by hand.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import signal
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

import broca
from broca.errors import BadInput, BrocaError, SelfTestFailed, UnsupportedModel
from broca.integrations.lm_eval import BrocaLM
from broca.models import GatedModel
from broca.models.sharing import AT_LOAD, WAYS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architectures.md"
BLOCK = ("<!-- architectures -->\n", "<!-- /architectures -->\n")

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_WIDTH = 258, 64, 3, 4, 2, 16
SECONDS = 60
MAX_LENGTH = 120

PARITY = 1e-3
"""Largest difference of a log-likelihood from lm-eval's `hf` that counts as equal, in nats."""

TOLERANCE = 1e-4
"""Largest difference of logits that counts as equal, in units of their standard deviation."""

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH, "n_embd": WIDTH, "d_model": WIDTH, "dim": WIDTH, "embedding_size": WIDTH,
    "word_embed_proj_dim": WIDTH, "lru_width": WIDTH, "hidden_dim": WIDTH,
    "num_hidden_layers": LAYERS, "n_layer": LAYERS, "n_layers": LAYERS, "num_layers": LAYERS,
    "decoder_layers": LAYERS, "encoder_layers": LAYERS,
    "num_attention_heads": HEADS, "n_head": HEADS, "n_heads": HEADS, "num_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "num_kv_heads": KV_HEADS, "n_head_kv": KV_HEADS,
    "kv_n_heads": KV_HEADS, "num_global_key_value_heads": 1,
    "head_dim": HEAD_WIDTH, "attention_head_dim": HEAD_WIDTH, "global_head_dim": 2 * HEAD_WIDTH,
    "kv_channels": HEAD_WIDTH, "v_head_dim": 24, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8, "rotary_dim": 8, "kv_lora_rank": 16, "q_lora_rank": 16,
    "intermediate_size": 96, "ffn_dim": 96, "n_inner": 96, "d_ff": 96, "ffn_hidden_size": 96,
    "decoder_ffn_dim": 96, "encoder_ffn_dim": 96, "block_ff_dim": 96, "mlp_hidden_size": 96,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "shared_intermediate_size": 32, "moe_ffn_hidden_size": 32,
    "max_position_embeddings": 128, "n_positions": 128, "n_ctx": 128, "max_seq_len": 128,
    "max_sequence_length": 128, "sliding_window": 16, "attention_window_size": 16,
    "local_window_size": 16, "window_size": 16, "attention_chunk_size": 16,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "zero_expert_num": 1, "n_shared_experts": 1, "num_shared_experts": 1,
    "num_experts_per_tok": 2, "num_experts_per_token": 2, "moe_topk": 2, "moe_top_k": 2,
    "top_k_experts": 2, "moe_k": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "num_dense_layers": 1, "moe_layer_start_index": 0, "moe_layer_end_index": LAYERS - 1,
    "mamba_n_heads": 8, "mamba_num_heads": 8, "n_mamba_heads": 2, "mamba_d_head": 16,
    "mamba_head_dim": 16, "mamba_headdim": 16, "mamba_ngroups": 1, "mamba_n_groups": 1,
    "n_groups": 1, "mamba_d_state": 8, "ssm_state_size": 8, "state_size": 8, "mamba_d_ssm": 128,
    "mamba_chunk_size": 8, "chunk_size": 8, "mamba_dt_rank": 8, "time_step_rank": 8,
    "use_mamba_kernels": False, "mamba_expand": 2,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "linear_num_heads": HEADS, "linear_head_dim": HEAD_WIDTH,
    "conv_dim": WIDTH, "conv_dim_out": WIDTH, "adapter_rank": 4,
    "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCABULARY,
    "num_kv_shared_layers": 1, "laurel_rank": 8, "attn_layer_period": 3, "attn_layer_offset": 1,
    "axial_pos_embds": False, "type_vocab_size": 2, "block_size": 16, "num_mem_blocks": 1,
    "index_n_heads": 2, "index_head_dim": 16, "index_topk": 64, "num_decoder_layers": LAYERS,
    "num_encoder_layers": LAYERS, "num_decoder_attention_heads": HEADS,
    "num_encoder_attention_heads": HEADS, "num_codebooks": 1, "max_window_layers": LAYERS,
    "encoder_hash_byte_group_vocab": 64, "initializer_range": 0.2, "init_std": 0.2,
    "initializer_std": 0.2,
    "is_decoder": True, "use_cache": True, "add_cross_attention": False,
    "n_input_layers": 1, "n_output_layers": 1,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
"""Value of every field of this name, wherever the default configuration has a number."""

FILL = "what is not stated"
"""In a variant with this key, fields that are None also take the values of `SIZES`."""

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"num_key_value_heads": HEADS, "num_kv_heads": HEADS, "n_head_kv": HEADS, "kv_n_heads": HEADS},
    {FILL: True, "attn_layer_indices": [1], "n_group": 1, "topk_group": 1, "routed_layers": None},
    {"layer_types": ["mamba", "attention", "mamba"]},
    {"layers_block_type": ["mamba", "hybrid", "mamba"]},
    {FILL: True, "layer_types": ["conv", "full_attention", "conv"]},
    {"layer_types": ["full_attention"] * LAYERS},
    {"attention_type": "original_full", "default_language": "en_XX"},
    {"head_dim": None},
    {"num_hidden_layers": 6, "num_layers": 6, "n_layer": 6},
    {"hidden_size": 128, "d_model": 128, "num_attention_heads": 8, "mamba_n_heads": 16},
    {"is_decoder": False},
)
"""Changes to the configuration, tried in order until a model passes."""


@dataclass(frozen=True)
class Trial:
    """The outcome of trying a class.

    Attributes:
        kind: The `model_type` of the class.
        architecture: Name of the class.
        outcome: `proven`, `refused`, `failed` or `not tried`.
        message: Path of the module at whose input heads are gated, or a message of broca or
            transformers.
        heads: Number of layers with heads, and of all layers, such as `3 of 3`.
        difference: Largest difference of a gated head's logits from those of a copy with zeroed
            weights, in standard deviations; None where no head is `comparable`.
        effect: Largest change of the logits by that head, in the same unit.
        parity: Largest difference of a log-likelihood from lm-eval's `hf`.
        shared: What rows of this class may share.
        text_part: Class of the text decoder's configuration if it is a part of the model's, else
            empty.
    """

    kind: str
    architecture: str
    outcome: str
    message: str
    heads: str = ""
    difference: float | None = None
    effect: float | None = None
    parity: float | None = None
    shared: str = ""
    text_part: str = ""


def classes() -> list[tuple[str, str]]:
    """Returns every `model_type` and class of a causal language model, in alphabetical order.

    A model that can also read images has its image class beside its text class.
    """
    pairs = set()
    for mapping in (MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES):
        for kind, names in mapping.items():
            if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
                pairs |= {(kind, name) for name in ((names,) if isinstance(names, str) else names)}
    return sorted(pairs)


def tiny_config(kind: type[PreTrainedConfig], variant: dict[str, Any]) -> PreTrainedConfig:
    """Returns a tiny configuration that is made from the default of its class.

    Args:
        kind: The class of the configuration.
        variant: Changes to `SIZES`.
    """
    default = kind()
    parts = {
        name: tiny_config(type(part), variant)
        for name in getattr(kind, "sub_configs", {})
        if isinstance(part := getattr(default, name, None), PreTrainedConfig)
    }
    rules = {**SIZES, **variant}
    depth = next(
        (
            getattr(default, name)
            for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
            if isinstance(getattr(default, name, None), int)
        ),
        0,
    )
    layers = rules["num_hidden_layers"]
    if "kv_lora_rank" in vars(default):  # latent attention has one key for all heads
        rules["num_key_value_heads"] = HEADS
    values: dict[str, Any] = {}
    for name, value in vars(default).items():
        if name.startswith("_") or name in parts:
            continue
        if name in rules and (_is_size(name, value) or (value is None and FILL in variant)):
            if rules[name] is not None:
                values[name] = rules[name]
        elif name in variant:
            values[name] = variant[name]
        elif isinstance(value, list | tuple) and depth > layers and len(value) == depth:
            values[name] = _every_kind(list(value), layers)
        elif isinstance(value, str) and depth > layers and len(value) == depth:
            values[name] = "".join(_every_kind(list(value), layers))
        elif isinstance(value, list) and value and all(_is_index(entry, depth) for entry in value):
            values[name] = [1]
    return kind(**values, **parts)


def _is_size(name: str, value: Any) -> bool:
    """Returns whether a rule may replace a value: a number, or None in place of a number."""
    if not isinstance(SIZES.get(name), int | float):
        return False
    if isinstance(SIZES[name], bool):
        return isinstance(value, bool)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or (value is None and name in ("head_dim", "num_key_value_heads", "n_inner"))


def _is_index(value: Any, depth: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < max(depth, 1)


def _every_kind(values: list[Any], count: int) -> list[Any]:
    """Returns `count` entries that repeat the distinct values in their order."""
    kinds = []
    for value in values:
        if value not in kinds:
            kinds.append(value)
    return [kinds[number % len(kinds)] for number in range(count)]


def tiny_model(kind: str, architecture: str, variant: dict[str, Any]) -> Any:
    """Returns a model with random weights that has run a forward pass on a few tokens.

    Raises:
        Exception: Whatever the class raises.
    """
    config_class = CONFIG_MAPPING[kind]
    model_class = getattr(transformers, architecture)
    expected_class = getattr(model_class, "config_class", None)
    if expected_class is not None and not issubclass(config_class, expected_class):
        config_class = expected_class
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = model_class(tiny_config(config_class, variant)).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:  # biases and norms, away from their neutral start
                    parameter.add_(0.1 * torch.randn_like(parameter))
            model(input_ids=torch.arange(3, 9)[None], use_cache=False)
    return model


def comparable(gated: GatedModel) -> list[Any]:
    """Returns the projections whose heads can be ablated by zeroing weights by hand.

    A norm before the projection mixes the heads, and weights that layers share cannot be zeroed in
    a single layer.
    """
    projections = gated.structure.projections
    places = [projection.module.weight.data_ptr() for projection in projections]
    return [
        projection
        for projection, place in zip(projections, places, strict=True)
        if projection.norm is None and places.count(place) == 1
    ]


def compared_by_hand(model: Any, gated: GatedModel) -> tuple[float, float]:
    """Compares a model with a gated head in every layer to a copy with weights zeroed by hand.

    Returns:
        The largest difference of their logits, and the largest change of the logits by the heads,
        in units of the logits' standard deviation.
    """
    edited, heads = copy.deepcopy(model), []
    for projection in comparable(gated):
        module = edited.get_submodule(projection.path)
        columns = slice(projection.head_dim, 2 * projection.head_dim)
        with torch.no_grad():
            weight = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
            weight[columns] = 0
        heads.append(f"L{projection.layer}H1")
    tokens = torch.randint(3, VOCABULARY, (1, 12), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        expected = edited(input_ids=tokens, use_cache=False).logits
        with gated.ablated(heads):
            ablated = model(input_ids=tokens, use_cache=False).logits
        intact = model(input_ids=tokens, use_cache=False).logits
    difference, effect = (
        float((logits - expected).abs().max() / expected.std()) for logits in (ablated, intact)
    )
    return difference, effect


DESCRIPTION = "Answer every question with a few letters, as the ones before it. "
"""A context that all questions share; it is longer than the windows of the tiny models."""

REQUEST_KINDS = ("loglikelihood", "generate_until", "loglikelihood_rolling")


def parity_requests() -> dict[str, list[Instance]]:
    """Returns requests of every kind: choices, generations and whole texts.

    Questions of unequal lengths stand behind a shared context that is longer than a window. Some
    contexts have a single token, and some are longer than the model allows.
    """
    questions = ["What is 2 and 3?", "Why?", "Which of these words is the longest?", "Is it so?"]
    asked = [f"{DESCRIPTION}{question} A:" for question in questions]
    pairs = [(text, choice) for text in asked for choice in (" a", " seven", " no one")]
    pairs += [("a", "b"), ("ab", "c"), (DESCRIPTION * 3, " yes"), (questions[0] * 9, " it is")]
    settings = {"until": ["\n", "zz"], "max_gen_toks": 10, "do_sample": False}
    generations = [*asked, "a", DESCRIPTION * 2 + "No."]
    texts = ["b", DESCRIPTION[:40], DESCRIPTION * 3]
    arguments: list[list[tuple[Any, ...]]] = [
        [*pairs],
        [(text, settings) for text in generations],
        [(text,) for text in texts],
    ]
    return {
        kind: [Instance(kind, {}, of_request, number) for number, of_request in enumerate(every)]
        for kind, every in zip(REQUEST_KINDS, arguments, strict=True)
    }


def answered(lm: LM) -> tuple[list[float], list[str]]:
    """Returns the log-likelihoods and the texts of an lm-eval model on all parity requests."""
    choices, generations, texts = parity_requests().values()
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bars
        scores = [value for value, _ in lm.loglikelihood(choices)]
        scores += lm.loglikelihood_rolling(texts)
        return scores, lm.generate_until(generations)


def letter_tokenizer() -> Any:
    """Returns a tokenizer with a letter for every token, so that different tokens are seen."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    letters = [chr(code) for code in (*range(32, 127), 10, *range(0x100, 0x200))]
    vocabulary = {"<bos>": 0, "<eos>": 1}
    vocabulary |= {letter: number for number, letter in enumerate(letters[: VOCABULARY - 2], 2)}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<eos>"
    )


def compared_with_hf(model: Any, gated: GatedModel) -> tuple[float, str]:
    """Compares broca as a model of lm-eval with lm-eval's `hf`, one request at a time.

    Returns:
        The largest difference of a log-likelihood, with the engine's defaults and with small
        batches, and a description of a text that differs (empty if none does).
    """
    hf = HFLM(
        pretrained=model, tokenizer=gated.tokenizer, backend="causal", batch_size=1,
        max_length=MAX_LENGTH,
    )  # fmt: skip
    scores, texts = answered(hf)
    worst = 0.0
    for budget in (None, 100):
        broca_lm = BrocaLM(pretrained=gated, token_budget=budget, max_length=MAX_LENGTH)
        broca_scores, broca_texts = answered(broca_lm)
        difference = max(abs(a - b) for a, b in zip(broca_scores, scores, strict=True))
        worst = max(worst, difference)
        for broca_text, text in zip(broca_texts, texts, strict=True):
            if broca_text != text:
                return worst, f"a text is {broca_text!r}, of `hf` {text!r}"
    return worst, ""


def tried(kind: str, architecture: str) -> Trial:
    """Tries all variants of a class's configuration and returns the best outcome."""
    order = ("proven", "refused", "failed", "not tried")
    best: Trial | None = None
    for variant in VARIANTS:
        with _time_limit():
            trial = tried_once(kind, architecture, variant)
        if best is None or order.index(trial.outcome) < order.index(best.outcome):
            best = trial
        if best.outcome == "proven":
            break
    assert best is not None
    return best


def tried_once(kind: str, architecture: str, variant: dict[str, Any]) -> Trial:
    """Tries a class with a variant of its configuration and returns the outcome."""
    try:
        model = tiny_model(kind, architecture, variant)
    except Exception as error:  # noqa: BLE001  # a class may raise anything
        return Trial(kind, architecture, "not tried", _line(error))
    torch.manual_seed(0)  # what a model draws does not depend on the classes before it
    try:
        gated = broca.load(model, letter_tokenizer())
        difference = effect = None
        if comparable(gated):
            difference, effect = compared_by_hand(model, gated)
        parity, text = compared_with_hf(model, gated)
    except SelfTestFailed as error:
        return Trial(kind, architecture, "failed", str(error))
    except UnsupportedModel as error:
        return Trial(kind, architecture, "refused", str(error))
    except BadInput as error:  # its generations are refused
        return Trial(kind, architecture, "refused", str(error))
    except BrocaError as error:
        return Trial(kind, architecture, "failed", str(error))
    except Exception as error:  # noqa: BLE001  # no such error may reach a user
        return Trial(kind, architecture, "failed", f"{type(error).__name__}: {_line(error)}")
    if effect is not None and effect < 10 * TOLERANCE:
        reason = "the head that was ablated changes nothing here: nothing is proven by it"
        return Trial(kind, architecture, "not tried", reason)
    if difference is not None and difference > TOLERANCE:
        reason = f"a gated head differs from zeroed weights by {difference:.1g} standard deviations"
        return Trial(kind, architecture, "failed", reason)
    if text or parity > PARITY:
        reason = text or f"a log-likelihood differs from that of `hf` by {parity:.1g}"
        return Trial(kind, architecture, "failed", reason)
    sharing = gated.sharing(AT_LOAD)
    ways = [way for way in WAYS if getattr(sharing, way)]
    projections = gated.structure.projections
    path = projections[0].entrance.path.split(".")
    path = ["*" if part.isdigit() else part for part in path]
    decoder = model.config.get_text_config(decoder=True)
    return Trial(
        kind,
        architecture,
        "proven",
        ".".join(path),
        f"{len(projections)} of {gated.structure.layers}",
        difference,
        effect,
        parity,
        "all" if len(ways) == len(WAYS) else ", ".join(ways) or "none",
        type(decoder).__name__ if decoder is not model.config else "",
    )


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raises `TimeoutError` after `SECONDS`; `tried_once` turns it into an outcome."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).strip()[:160]


HEADINGS = {
    "proven": "Proven",
    "refused": "Refused by name",
    "failed": "Refused by the self-test",
    "not tried": "Not tried",
}


def page_block(trials: list[Trial]) -> str:
    """Returns the block of the page that lists the trials by outcome."""
    counts = {outcome: sum(trial.outcome == outcome for trial in trials) for outcome in HEADINGS}
    lines = [
        f"Of the {len(trials)} causal language models of transformers {transformers.__version__} "
        "(classes that also read images are counted separately), "
        f"{counts['proven']} are proven, {counts['refused']} are refused by name, "
        f"{counts['failed']} by the self-test, and {counts['not tried']} could not be tried with a "
        "tiny configuration made by rule.",
        "",
    ]
    for outcome, heading in HEADINGS.items():
        chosen = [trial for trial in trials if trial.outcome == outcome]
        if not chosen:
            continue
        lines += [f"## {heading}", ""]
        if outcome == "proven":
            lines += [
                "| model type | class | heads are gated at the input of | layers with heads | "
                "difference | effect | from `hf` | shared | remark |",
                "|---|---|---|---|---|---|---|---|---|",
            ]
            lines += [_proven_line(trial) for trial in chosen]
        else:
            lines += ["| model type | class | why |", "|---|---|---|"]
            lines += [
                f"| `{trial.kind}` | `{trial.architecture}` | {_cell(trial.message)} |"
                for trial in chosen
            ]
        lines.append("")
    return "\n".join(lines)


def _proven_line(trial: Trial) -> str:
    remark = f"its text part (`{trial.text_part}`) alone" if trial.text_part else ""
    numbers = (
        "" if value is None else f"{value:.0e}" if value else "0"
        for value in (trial.difference, trial.effect, trial.parity)
    )
    return (
        f"| `{trial.kind}` | `{trial.architecture}` | `{trial.message}` | {trial.heads} | "
        f"{' | '.join(numbers)} | {trial.shared} | {remark} |"
    )


def _cell(text: str) -> str:
    """Returns a message as a table cell, without the parts that all messages share."""
    text = text.split(" is not covered: ")[-1].split("(in memory)' failed: ")[-1]
    return text.replace("|", "\\|").replace(
        "; no ablation of this model can be trusted, please report it", ""
    )


def rewritten(page: str, trials: list[Trial]) -> str:
    """Returns the page with its block replaced by that of the trials."""
    before, remainder = page.split(BLOCK[0])
    after = remainder.split(BLOCK[1])[1]
    return before + BLOCK[0] + "\n" + page_block(trials) + "\n" + BLOCK[1] + after


def main() -> None:
    """Tries the classes and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="model types to try; without any, all for the page"
    )
    parser.add_argument("--trials", type=Path, help="a file that keeps the trials as JSON lines")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    stored = [Trial(**json.loads(line)) for line in _lines(arguments.trials)]
    trials = {(trial.kind, trial.architecture): trial for trial in stored}
    for key in classes():
        if key in trials or (arguments.names and key[0] not in arguments.names):
            continue
        trials[key] = trial = tried(*key)
        print(f"{trial.outcome:10} {trial.kind:24} {trial.message[:150]}", flush=True)
        if arguments.trials:
            with arguments.trials.open("a") as file:
                file.write(json.dumps(asdict(trial)) + "\n")
    if not arguments.names:
        PAGE.write_text(rewritten(PAGE.read_text(), [trials[key] for key in classes()]))


def _lines(file: Path | None) -> list[str]:
    return file.read_text().splitlines() if file is not None and file.exists() else []


if __name__ == "__main__":
    main()
