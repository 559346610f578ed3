"""Reads the options of generations and of chat templates: NAME=VALUE pairs or JSON."""

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from broca.errors import BadInput, nearest

NEW_TOKENS = "max_gen_toks"
"""lm-eval's name of the longest generation in tokens."""

LENGTH_NAMES = (NEW_TOKENS, "max_new_tokens", "max_tokens", "max_completion_tokens")
"""All names that lm-eval accepts for it."""

APPLIED_SETTINGS = (
    "repetition_penalty", "no_repeat_ngram_size", "bad_words_ids", "min_length", "min_new_tokens",
    "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
    "suppress_tokens", "begin_suppress_tokens", "sequence_bias",
)  # fmt: skip
"""Settings of transformers' `generate` that change the most likely token, which are applied."""

REFUSED_SETTINGS = (
    "num_beams", "num_beam_groups", "num_return_sequences", "diversity_penalty", "penalty_alpha",
    "dola_layers", "guidance_scale", "constraints", "force_words_ids", "token_healing",
    "encoder_repetition_penalty", "encoder_no_repeat_ngram_size", "watermarking_config",
    "stop_strings", "max_time",
)  # fmt: skip
"""Settings of `generate` that change a text and are not applied; they can be switched off."""


def require_day(day: str) -> None:
    """Refuses a `chat_template_date` that is no day.

    Raises:
        BadInput: It is not of the form YYYY-MM-DD.
    """
    try:
        date.fromisoformat(day)
    except (TypeError, ValueError):
        raise BadInput(f"`chat_template_date` must be YYYY-MM-DD, not {day!r}") from None


def generation_settings(gen_kwargs: str | Mapping[str, Any]) -> dict[str, Any]:
    """Reads settings of generations; all of lm-eval's names of the length become `max_gen_toks`.

    Raises:
        BadInput: The settings cannot be read, or one is unknown or requests sampling.
    """
    settings: dict[str, Any] = {}
    for name, value in named_values(gen_kwargs):
        if name in LENGTH_NAMES:
            name = NEW_TOKENS
            if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
                raise BadInput(f"`gen_kwargs`: {name} must be a number of tokens, not {value!r}")
            settings[name] = int(value)
        elif name == "until":
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list | tuple) or {*map(type, texts)} - {str}:
                raise BadInput(f"`gen_kwargs`: until is a text or a list of texts, not {value!r}")
            settings[name] = list(texts)
        elif name in ("do_sample", "temperature"):
            if str(value).lower() not in ("false", "0", "0.0"):
                raise BadInput(
                    f"`gen_kwargs`: {name}={value} requests sampling: broca decodes greedily, so "
                    "that equal inputs give equal outputs; leave it out"
                )
            settings["do_sample"] = False
        elif name in APPLIED_SETTINGS or name in REFUSED_SETTINGS:
            settings[name] = json_value(value)
            if name in REFUSED_SETTINGS and settings[name] not in (None, False, 0, 1):
                raise BadInput(
                    f"`gen_kwargs`: {name}={value} is not applied: broca decodes greedily, token "
                    "by token; leave it out"
                )
        else:
            accepted = (NEW_TOKENS, "until", *LENGTH_NAMES, *APPLIED_SETTINGS)
            raise BadInput(
                f"`gen_kwargs`: '{name}' is unknown{nearest(name, accepted)}; use {NEW_TOKENS}, "
                f"until, {', '.join(APPLIED_SETTINGS)}"
            )
    return settings


def json_value(value: Any) -> Any:
    """Reads a number, true, false, null or a list from text; other text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.lower() if value.lower() in ("true", "false", "none") else value)
    except ValueError:
        return None if value.lower() == "none" else value


def named_values(
    gen_kwargs: str | Mapping[str, Any], *, option: str = "gen_kwargs"
) -> list[tuple[str, Any]]:
    """Names and values of a mapping, of JSON, or of NAME=VALUE pairs joined by commas."""
    if isinstance(gen_kwargs, str) and gen_kwargs.lstrip().startswith("{"):
        try:
            gen_kwargs = json.loads(gen_kwargs)
        except ValueError as error:
            raise BadInput(f"`{option}` '{gen_kwargs}' is not JSON: {error}") from error
    if isinstance(gen_kwargs, Mapping):
        return list(gen_kwargs.items())
    if not isinstance(gen_kwargs, str):
        raise BadInput(f"`{option}` must be NAME=VALUE,... or JSON, not {gen_kwargs!r}")
    pairs = []
    for pair in filter(str.strip, gen_kwargs.split(",")):
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise BadInput(
                f"`{option}` '{gen_kwargs}' is not of the form NAME=VALUE,NAME=VALUE; a text "
                'with a comma needs JSON, {"until": ["a,b"]}'
            )
        text = value.replace("\\n", "\n").replace("\\t", "\t")
        pairs.append((name.strip(), text if name.strip() == "until" else value.strip()))
    return pairs
