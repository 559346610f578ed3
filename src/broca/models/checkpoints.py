"""The files of a model: a shipped folder, a local one or a repository of the Hugging Face hub.

The name of a PEFT adapter means its base model with the adapter.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch
from urllib.parse import urlsplit
from urllib.request import getproxies

import huggingface_hub
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, PretrainedConfig
from transformers.utils import find_adapter_config_file

from broca.errors import (
    BadInput,
    BrocaError,
    UnknownName,
    UnsupportedModel,
    first_line,
    nearest,
    require_package,
)
from broca.known_paths import PACKAGED_MODELS, SHIPPED_MODELS, place_of, require_named
from broca.limits import time_limit
from broca.models.gguf_files import GGUFFile, gguf_place
from broca.options import OFFLINE, ModelOptions

_ADAPTER = "adapter_config.json"

_ADAPTER_S = 120.0
"""Maximum time for putting an adapter on its base."""

_SECONDS = 5.0
"""How long the hub may take to be reached."""


@cache
def reachable() -> bool:
    """Whether a connection to the hub can be opened; True behind a proxy, where this is unknown."""
    if getproxies():
        return True
    address = urlsplit(huggingface_hub.constants.ENDPOINT)
    try:
        with socket.create_connection(
            (address.hostname or "", address.port or 443), timeout=_SECONDS
        ):
            return True
    except OSError:
        return False


def go_offline() -> None:
    """Forbids all network calls of this process; files in the local cache can still be used."""
    os.environ.update(OFFLINE)
    _keep_off_hub()


def skip_retries_if_unreachable() -> None:
    """Sets the hub libraries to offline mode if there is no network; the cache works."""
    if not huggingface_hub.constants.HF_HUB_OFFLINE and not reachable():
        _keep_off_hub()


def _keep_off_hub() -> None:
    """Sets the libraries to offline mode that have already read their variables."""
    huggingface_hub.constants.HF_HUB_OFFLINE = True
    if "datasets" in sys.modules:
        sys.modules["datasets"].config.HF_HUB_OFFLINE = True


def shipped_model_folder(name: str) -> Path:
    """Returns the folder of a model that is part of the package."""
    return Path(str(files("broca") / "reference_models" / name))


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
    file = folder / _ADAPTER
    if not file.is_file() or (folder / "config.json").is_file():
        return None
    return _read(file, str(folder))


def _adapter(name: str, *, revision: str | None, offline: bool) -> AdapterFiles | None:
    """Returns the adapter that a name means, of a folder or on the hub; None if it means none."""
    path = place_of(name)
    if name in SHIPPED_MODELS or name in PACKAGED_MODELS or path.is_file():
        return None
    if path.is_dir() or not _may_be_on_hub(name):
        return adapter_in(path)
    skip_retries_if_unreachable()
    try:
        file = find_adapter_config_file(name, revision=revision, local_files_only=offline)
    except (OSError, ValueError):
        return None
    return None if file is None else _read(Path(file), name)


def _adapters(name: str, *, revision: str | None, offline: bool) -> tuple[AdapterFiles, ...]:
    """Returns the PEFT adapters that a name means, each of the model with those before it.

    Raises:
        BadInput: An adapter is its own base, or only it names the folder of its base.
    """
    adapters: list[AdapterFiles] = []
    while adapter := _adapter(name, revision=revision, offline=offline):
        if adapter.base in (name, *(outer.base for outer in adapters)):
            raise BadInput(
                f"adapter '{name}' names itself as its base model: write the name or folder of its "
                f"base into {_ADAPTER}"
            )
        require_named(adapter.base, inside=adapter.place)
        adapters.insert(0, adapter)
        name, revision = adapter.base, adapter.base_revision
    return tuple(adapters)


def _read(file: Path, place: str) -> AdapterFiles:
    """Reads the configuration of an adapter.

    Raises:
        BadInput: It cannot be read, or names no base model.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        base, method = content["base_model_name_or_path"].strip(), str(content["peft_type"])
        revision = content.get("revision")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"adapter '{place}': no method and base model can be read from its {_ADAPTER} "
            f"({type(error).__name__}: {error}); give a folder that PEFT's save_pretrained wrote"
        ) from error
    if not Path(base).expanduser().is_dir() and (file.parent / base).is_dir():
        base = str(file.parent / base)  # relative to the adapter
    return AdapterFiles(place, base, None if revision is None else str(revision), method)


@contextmanager
def pickles(allowed: bool) -> Iterator[None]:
    """Refuses every file in pickle format that is read within this context, unless allowed.

    transformers and PEFT read them by `torch.load` wherever a folder or an index names one.

    Raises:
        BadInput: A pickle would be read.
    """

    def refused(file: Any, *_: Any, **__: Any) -> NoReturn:
        raise BadInput(
            f"weights '{file}' are in pickle format, which can hold more than tensors: save them "
            "as safetensors, or allow them with `allow_pickle`"
        )

    with patch.object(torch, "load", torch.load if allowed else refused):
        yield


def require_own_files(folder: Path) -> None:
    """Refuses a checkpoint whose index names files of other folders.

    Raises:
        BadInput: It does.
    """
    for index in folder.glob("*.index.json"):
        with suppress(OSError, ValueError, AttributeError, KeyError, TypeError):  # not an index
            for file in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values():
                if Path(file).name != file:
                    raise BadInput(
                        f"'{index}' names the file '{file}' of another folder: a checkpoint holds "
                        "its own weights"
                    )


def require_peft() -> Any:
    """Returns the library PEFT.

    Raises:
        MissingExtra: PEFT is not installed.
    """
    return require_package("peft", "an adapter needs PEFT", "export")


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
    peft = require_peft()
    try:
        with time_limit(_ADAPTER_S, f"adapter '{adapter.place}'"):  # its file has patterns of names
            weights = peft.load_peft_weights(adapter.place, device="cpu", **where)
            _resize(base, weights)
            adapted = peft.PeftModel.from_pretrained(base, adapter.place, **where)
            # once more: `from_pretrained` only warns of what is missing
            report = peft.set_peft_model_state_dict(adapted, weights)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise BadInput(
            f"adapter '{adapter.place}' could not be put on '{adapter.base}': {first_line(error)}; "
            "check that this is the base that it was trained on"
        ) from error
    inner = unwrapped(adapted)
    # what layers share is saved once, what replaces a module perhaps twice
    own = adapted.state_dict(keep_vars=True)  # with the buffers that layers share (VeRA)
    saved = {id(own[key]) for key in own.keys() - set(report.missing_keys)}
    missing = [
        key for key in report.missing_keys if ".default" in key and id(own.get(key)) not in saved
    ]
    unknown = [key for key in report.unexpected_keys if ".modules_to_save." not in key]
    for fault, keys in (("lacks", missing), ("has no place for", unknown)):
        if keys:
            raise BadInput(
                f"adapter '{adapter.place}' on '{adapter.base}' {fault} {len(keys)} tensors "
                f"({', '.join(keys[:2])}): check that all its files are there and that this is the "
                "base that it was trained on"
            )
    described = f"{adapter.method} adapter {adapter.place} on {adapter.base}"
    if not merge:
        return inner, f"{described}, not merged"
    try:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            merged: nn.Module = adapted.merge_and_unload()
    except (NotImplementedError, ValueError, RuntimeError, AttributeError) as error:
        raise UnsupportedModel(
            f"adapter '{adapter.place}' cannot be merged into its base: {first_line(error)}; "
            "switch `merge_adapter` off"
        ) from error
    return merged, f"{described}, merged"


def _resize(base: Any, weights: Mapping[str, Tensor]) -> None:
    """Gives a base as many tokens as an adapter with embeddings of its own has."""
    table = base.get_input_embeddings()
    (name,) = (name for name, module in base.named_modules() if module is table)
    for key, tensor in weights.items():
        if key.endswith((f"{name}.weight", f"{name}.token_adapter.base_layer.weight")):
            base.resize_token_embeddings(len(tensor), mean_resizing=False)


def described_adapters(model: Any) -> str:
    """Returns the description of the active adapters of a model in memory; empty without one."""
    layers = [module for module in model.modules() if hasattr(module, "merged_adapters")]
    merged = {name for layer in layers for name in layer.merged_adapters}
    active = {name for one in layers if not one.disable_adapters for name in one.active_adapters}
    return "; ".join(
        f"{config.peft_type.value} adapter {name} in memory on "
        f"{config.base_model_name_or_path or 'its base'}, {'' if name in merged else 'not '}merged"
        for name, config in getattr(model, "peft_config", {}).items() if name in merged | active
    )  # fmt: skip


def unwrapped(model: Any) -> Any:
    """Returns the transformers model that torch.compile or a `PeftModel` wraps, with its adapter.

    Raises:
        UnsupportedModel: The adapter adds tokens to the prompt, which requires the wrapper.
    """
    model = getattr(model, "_orig_mod", model)
    inner = getattr(model, "get_base_model", None)
    if inner is None or not hasattr(model, "peft_config"):
        return model
    for name, config in model.peft_config.items():
        if getattr(config, "is_prompt_learning", False):
            raise UnsupportedModel(
                f"adapter '{name}' ({config.peft_type.value}) puts learned tokens before the "
                "prompt: broca takes adapters that change weights, such as LoRA and IA3"
            )
    return inner()


@dataclass(frozen=True)
class Checkpoint:
    """The files that a model's name means.

    Attributes:
        name: Name of the base model.
        source: Its folder, or its id on the hub.
        adapters: The adapters, each of the model with those before it.
        options: Passed to transformers for the base: its `revision` on the hub, among others.
        config: Configuration of the base.
        gguf: The base's GGUF file, if it is one.
    """

    name: str
    source: Path | str
    adapters: tuple[AdapterFiles, ...]
    options: dict[str, Any]
    config: Any
    gguf: GGUFFile | None

    @classmethod
    def find(cls, name: str, options: ModelOptions, *, offline: bool = False) -> Checkpoint:
        """Finds the files of a model and reads its configuration; see `load`.

        Raises:
            UnknownName: The model does not exist.
            BadInput: The folder contains no loadable model, or `revision` is of a folder.
        """
        adapters = _adapters(name, revision=options.revision, offline=offline)
        base, revision = name, options.revision
        if adapters:
            base, revision = adapters[0].base, adapters[0].base_revision
        source, file = gguf_place(base) or (_source(base), None)
        local = isinstance(source, Path)
        if local and revision is not None and not adapters:
            raise BadInput(
                f"`revision` is for models on the hub: '{name}' is a folder, which has only one"
            )
        passed: dict[str, Any] = {
            "trust_remote_code": options.trust_remote_code, "local_files_only": offline or local,
        }  # fmt: skip
        if revision is not None and not local:
            passed["revision"] = revision
        if file is not None:
            passed["gguf_file"] = file
        config, gguf = _config(base, source, passed)
        if kernel := _kernel(config):
            raise BadInput(
                f"model '{base}': its config.json names code on the hub ({first_line(kernel)}), "
                "which is never run: remove `attn_implementation` from it"
            )
        return cls(base, source, adapters, passed, config, gguf)

    @property
    def remote_code(self) -> bool:
        """Whether the model's class comes from its own Python files instead of transformers."""
        own = type(self.config).__module__.startswith("transformers_modules")
        return bool(self.options["trust_remote_code"]) and own

    @property
    def commit(self) -> str | None:
        """The commit of the base on the hub; None for a folder."""
        if isinstance(self.source, Path):
            return None
        name = self.options.get("gguf_file", "config.json")
        file = huggingface_hub.try_to_load_from_cache(
            self.source, name, revision=self.options.get("revision")
        )
        return Path(file).parents[name.count("/")].name if isinstance(file, str) else None

    def tokenizer(self) -> Any:
        """Loads the tokenizer in the folder of the last adapter that has one, else the base's."""
        own = [a.place for a in self.adapters if Path(a.place, "tokenizer_config.json").is_file()]
        options = self.options | ({"local_files_only": True} if own else {})
        return AutoTokenizer.from_pretrained([str(self.source), *own][-1], **options)


def _kernel(config: PretrainedConfig) -> str:
    """Returns the attention that is code on the hub, by a configuration or one within it."""
    own = str(getattr(config, "_attn_implementation", ""))
    parts = (_kernel(part) for part in vars(config).values() if isinstance(part, PretrainedConfig))
    return own if "/" in own else next(filter(None, parts), "")


def _source(name: str) -> Path | str:
    """Returns the local folder that `name` means, or the hub id."""
    if name in SHIPPED_MODELS:
        return shipped_model_folder(name)
    path = place_of(name)
    if path.is_dir():
        if (path / _ADAPTER).is_file():
            raise BadInput(
                f"folder '{name}' holds a model and an adapter ({_ADAPTER}), which transformers "
                "would put on the model: move one of them to a folder of its own"
            )
        return path
    if path.exists():
        raise BadInput(f"'{name}' is a file, not a model: give the folder that holds config.json")
    if not _may_be_on_hub(name):
        folders = [str(file.parent) for file in path.parent.glob("*/config.json")]
        raise UnknownName(
            f"model folder '{name}' does not exist{nearest(str(path), folders)}; check the path"
        )
    return name


def _may_be_on_hub(name: str) -> bool:
    """Whether a name has the form of a hub id, not of a path."""
    local = name.startswith((".", "/", "~")) or name.count("/") > 1 or os.sep * 2 in name
    return bool(name.strip()) and not local


def _config(name: str, source: Path | str, options: dict[str, Any]) -> tuple[Any, GGUFFile | None]:
    if not options["local_files_only"]:
        skip_retries_if_unreachable()
    try:
        if "gguf_file" in options:
            gguf = GGUFFile(name, source, options)
            return gguf.config(), gguf
        return AutoConfig.from_pretrained(str(source), **options), None
    except BrocaError:
        raise
    except Exception as error:  # a configuration may be anything
        if "trust_remote_code" in str(error):
            raise BadInput(
                f"model '{name}' comes with Python files of its own, which are not run by default: "
                "read them, then set `trust_remote_code`"
            ) from error
        if isinstance(source, Path):
            raise BadInput(
                f"model '{name}': its configuration cannot be read: {first_line(error)}"
            ) from error
        known = (*SHIPPED_MODELS, *PACKAGED_MODELS)
        raise UnknownName(
            f"model '{name}' is unknown{nearest(name, known)}: it is not shipped "
            f"({', '.join(known)}), not a local folder, and could not be read from the hub: "
            f"{first_line(error)}; if it is a run's model in memory, give it as `model`"
        ) from error
