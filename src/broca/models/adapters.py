"""PEFT adapters: the name of an adapter means its base model with the adapter."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from broca.errors import BadInput, MissingExtra, UnsupportedModel, first_line

CONFIG = "adapter_config.json"
_SHARED = ("vblora_vector_bank", "prompt_encoder", ".tinylora_v.", ".unilora_theta_d.")
"""Tensors that PEFT saves once and has in every layer, or does not save."""

_EXTRA = "install broca's extra: pip install 'broca[export]'"


@dataclass(frozen=True)
class AdapterFiles:
    """The place of an adapter and its base model.

    Attributes:
        place: Folder, or id on the hub.
        base: Name of the base model: shipped, a folder, or a hub id.
        base_revision: Commit of the base on the hub, if the adapter states one.
        method: PEFT's name of the method, such as `LORA`.
    """

    place: str
    base: str
    base_revision: str | None
    method: str


def adapter_in(folder: Path) -> AdapterFiles | None:
    """Returns the adapter in a folder; None if there is none, or a whole model.

    Raises:
        BadInput: The configuration cannot be read or names no base model.
    """
    file = folder / CONFIG
    if not file.is_file() or (folder / "config.json").is_file():
        return None
    return _read(file, str(folder))


def adapter_on_hub(name: str, *, revision: str | None, offline: bool) -> AdapterFiles | None:
    """Returns the adapter in a hub repository; None if there is none.

    Raises:
        BadInput: The configuration cannot be read or names no base model.
    """
    from transformers.utils import find_adapter_config_file

    try:
        file = find_adapter_config_file(name, revision=revision, local_files_only=offline)
    except (OSError, ValueError):
        return None
    return None if file is None else _read(Path(file), name)


def _read(file: Path, place: str) -> AdapterFiles:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        base, method = content["base_model_name_or_path"], str(content["peft_type"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"adapter '{place}': its {CONFIG} cannot be read ({type(error).__name__}: {error}); "
            "give a folder that PEFT's save_pretrained wrote"
        ) from error
    if not isinstance(base, str) or not base.strip():
        raise BadInput(
            f"adapter '{place}' names no base model: write its name or folder into "
            f"base_model_name_or_path of {CONFIG}"
        )
    if not Path(base).expanduser().is_dir() and (file.parent / base).is_dir():
        base = str(file.parent / base)  # relative to the adapter
    revision = content.get("revision")
    return AdapterFiles(place, base, None if revision is None else str(revision), method)


def with_adapter(
    base: nn.Module, adapter: AdapterFiles, *, merge: bool, **where: Any
) -> tuple[nn.Module, str]:
    """Puts an adapter on its base model.

    Args:
        base: The base model of transformers; it is changed.
        adapter: The adapter.
        merge: Whether to merge its weights into the base; otherwise its modules run beside them.
        where: Passed to PEFT: `revision`, `local_files_only`.

    Returns:
        The transformers model, and the description of the adapter for results.

    Raises:
        MissingExtra: PEFT is not installed.
        UnsupportedModel: It adds tokens to the prompt, or the requested merge is impossible.
        BadInput: Its weights cannot be loaded.
    """
    try:
        import peft
    except ImportError as error:
        raise MissingExtra(f"adapter '{adapter.place}' needs PEFT: {_EXTRA}") from error
    try:
        adapted = peft.PeftModel.from_pretrained(base, adapter.place, **where)
        # reads them again: `from_pretrained` only warns of what is missing
        report = peft.set_peft_model_state_dict(
            adapted, peft.load_peft_weights(adapter.place, device="cpu", **where)
        )
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise BadInput(
            f"adapter '{adapter.place}' could not be put on '{adapter.base}': {first_line(error)}; "
            "check that this is the base that it was trained on"
        ) from error
    require_no_prompt(adapted, adapter.place)
    missing = [
        key
        for key in report.missing_keys
        if ".default" in key and not any(shared in key for shared in _SHARED)
    ]
    for keys, fault, relation in (
        (missing, "lacks", "that"), (report.unexpected_keys, "holds", "beyond those that")
    ):  # fmt: skip
        if keys:
            raise BadInput(
                f"adapter '{adapter.place}' {fault} {len(keys)} tensors ({', '.join(keys[:2])}) "
                f"{relation} {CONFIG} and '{adapter.base}' describe: check that all its files are "
                "there and that this is the base that it was trained on"
            )
    described = f"{adapter.method} adapter {adapter.place} on {adapter.base}"
    if not merge:
        return adapted.get_base_model(), f"{described}, not merged"
    try:
        merged: nn.Module = adapted.merge_and_unload()
    except (NotImplementedError, ValueError, RuntimeError, AttributeError) as error:
        raise UnsupportedModel(
            f"adapter '{adapter.place}' cannot be merged into its base: {first_line(error)}; "
            "switch `merge_adapter` off"
        ) from error
    return merged, f"{described}, merged"


def unwrapped(model: Any) -> Any:
    """Returns the transformers model that torch.compile or a `PeftModel` wraps, with its adapter.

    Raises:
        UnsupportedModel: The adapter adds tokens to the prompt, which requires the wrapper.
    """
    model = getattr(model, "_orig_mod", model)
    inner = getattr(model, "get_base_model", None)
    if inner is None or not hasattr(model, "peft_config"):
        return model
    require_no_prompt(model, type(model).__name__)
    return inner()


def require_no_prompt(model: Any, name: str) -> None:
    """Refuses adapters that work by tokens put before the prompt.

    Raises:
        UnsupportedModel: The adapter of a `PeftModel` adds tokens to the prompt.
    """
    for config in model.peft_config.values():
        if getattr(config, "is_prompt_learning", False):
            raise UnsupportedModel(
                f"adapter '{name}' ({config.peft_type.value}) puts learned tokens before the "
                "prompt: broca takes adapters that change weights, such as LoRA and IA3"
            )
