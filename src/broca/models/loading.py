"""Loads a model: a shipped one, a local folder, an id of the Hugging Face hub, or one in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from torch import nn

from broca.errors import BadInput, BrocaError, UnknownName, UnsupportedModel, first_line, nearest
from broca.models.adapters import AdapterFiles, adapter_in, adapter_on_hub, unwrapped, with_adapter
from broca.models.choosing import require_kinds
from broca.models.gated import GatedModel
from broca.models.hub import skip_retries_if_unreachable
from broca.models.selftest import require_self_test
from broca.models.structure import text_config
from broca.options import ModelOptions

SHIPPED_MODELS = ("reference", "reference-small", "planted")
"""Names of the models that are part of the package."""

DTYPES = ("auto", "stored", "float32", "bfloat16", "float16")

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def shipped_model_folder(name: str) -> Path:
    """Returns the folder of a model that is part of the package."""
    return Path(str(files("broca") / "reference_models" / name))


def location_of(name: str) -> str:
    """What transformers loads a model from: the folder that a name means, or the hub id.

    Raises:
        UnknownName: No such folder.
        BadInput: The folder holds no model.
    """
    return str(_source(name))


def load(
    model: str | os.PathLike[str] | nn.Module,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    components: str = "heads",
    revision: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    merge_adapter: bool = True,
    offline: bool = False,
) -> GatedModel:
    """Loads a causal language model, or takes one in memory, and proves that it can be gated.

    A model in memory is left as it was found: its training mode, `requires_grad` and hooks are
    what they were after every call. It stays on its device, in its number format.

    Args:
        model: `reference`, `reference-small` or `planted`, a local folder, a hub id, or a model of
            transformers or PEFT. A folder or repository that holds an adapter of PEFT is its base
            model with the adapter.
        tokenizer: The tokenizer of a model in memory; others bring their own.
        name: What to call a model in memory; by default where its configuration says it comes
            from, marked as in memory.
        components: Which parts can be ablated, such as `heads` or `heads+mlp`; see `KINDS`.
        revision: Branch, tag or commit of a model on the hub; its newest by default.
        dtype: `float32`, `bfloat16`, `float16`, `stored`, as the files have it, or `auto`: float32
            on a CPU, else bfloat16.
        device: Where to put it; the first GPU if there is one, else the CPU.
        device_map: Passed to transformers (`auto` spreads a model over devices).
        allow_pickle: Whether weights in pickle format may be loaded, where there are no others.
            Only tensors are unpickled, no other objects.
        trust_remote_code: Whether Python files that come with the model may be run, where
            transformers has no class for it. They can do whatever you can.
        merge_adapter: Whether an adapter's weights are added to its base's, or run beside them.
        offline: Make no network call: a hub model must be in the local cache.

    Returns:
        The model with gates on its components; the self-test has passed.

    Raises:
        UnknownName: No such model.
        BadInput: The folder holds no loadable model, or an argument is for the other kind of model.
        UnsupportedModel: Not a decoder, or an architecture that is not covered.
        SelfTestFailed: The gates do not do what they must on this model.
    """
    options = ModelOptions(
        components=components, revision=revision, dtype=dtype, device=device,
        device_map=device_map, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code,
        merge_adapter=merge_adapter,
    )  # fmt: skip
    if not isinstance(model, str | os.PathLike):
        defaults = asdict(ModelOptions(components=components))
        given = [key for key, value in asdict(options).items() if value != defaults[key]]
        return _wrapped(model, tokenizer, name, components, given + ["offline"] * offline)
    for key, value in (("tokenizer", tokenizer), ("name", name)):
        if value is not None:
            raise BadInput(
                f"`{key}` is for models in memory: '{model}' is loaded with its own; leave it out"
            )
    return _loaded(str(model), options, offline=offline)


def taken(model: Any) -> GatedModel:
    """A model with gates: one that has them, or a caller's model of transformers as it is.

    A caller's model needs no tokenizer here, and no self-test is run.

    Raises:
        BadInput: It is neither.
        UnsupportedModel: Not a decoder, or an architecture that is not covered.
    """
    if isinstance(model, GatedModel):
        return model
    model = unwrapped(getattr(model, "_orig_mod", model))
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise BadInput(
            f"`model` is a {type(model).__name__}: give what `broca.load` returned, or a causal "
            "language model of transformers"
        )
    name = getattr(model.config, "name_or_path", "") or type(model).__name__
    _require_decoder(name, model.config, architecture=type(model).__name__)
    return GatedModel.wrap(model, None, name=name)


def _wrapped(
    model: Any, tokenizer: Any, name: str | None, components: str, unused: list[str]
) -> GatedModel:
    """A caller's model with gates."""
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise BadInput(
            f"`model` is a {type(model).__name__}: give the name of a model, a folder or a causal "
            "language model of transformers"
        )
    if tokenizer is None:
        raise BadInput(
            "`tokenizer` is missing: a model in memory needs one, as its second argument"
        )
    model = unwrapped(getattr(model, "_orig_mod", model))  # what torch.compile was given
    if unused:
        raise BadInput(
            f"`{unused[0]}` is for models that broca loads itself: a model in memory stays as it is"
        )
    origin = getattr(model.config, "name_or_path", "") or type(model).__name__
    name = name or f"{origin} (in memory)"
    _require_decoder(name, model.config, architecture=type(model).__name__)
    with _running(name, type(model).__name__):
        gated = GatedModel.wrap(model, tokenizer, name=name, components=components)
        require_self_test(gated)
    return gated


def _loaded(name: str, options: ModelOptions, *, offline: bool) -> GatedModel:
    """A model that broca loads, in evaluation mode and frozen for good."""
    dtype, revision = options.dtype, options.revision
    if dtype not in DTYPES:
        raise BadInput(
            f"`dtype` '{dtype}' is unknown{nearest(dtype, DTYPES)}: use one of {', '.join(DTYPES)}"
        )
    require_kinds(options.components)
    adapter = _adapter(name, revision=revision, offline=offline)
    base = name if adapter is None else adapter.base
    source = _source(base, allow_pickle=options.allow_pickle)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if revision is not None and isinstance(source, Path) and adapter is None:
        raise BadInput(
            f"`revision` is for models on the hub: '{name}' is a folder, which has only one"
        )
    local = offline or isinstance(source, Path)
    hub_options: dict[str, Any] = {
        "trust_remote_code": options.trust_remote_code, "local_files_only": local,
    }  # fmt: skip
    base_revision = revision if adapter is None else adapter.base_revision
    if base_revision is not None and not isinstance(source, Path):
        hub_options["revision"] = base_revision
    config = _config(base, source, hub_options)
    remote_code = options.trust_remote_code and type(config).__module__.startswith(
        "transformers_modules"
    )
    _require_decoder(base, config, remote_code=remote_code)
    device = _device(options.device)
    if device == "cpu":
        # grouped-query attention without copying keys for every query head; on a GPU this setting
        # would choose a slower kernel
        os.environ.setdefault("TRANSFORMERS_SDPA_FORCE_GQA", "1")
    torch_dtype: Any = torch.float32 if device == "cpu" else torch.bfloat16
    if dtype != "auto":
        torch_dtype = "auto" if dtype == "stored" else getattr(torch, dtype)
    placement = {"device_map": options.device_map} if options.device_map else {}
    try:
        model = AutoModelForCausalLM.from_pretrained(
            str(source),
            config=config,
            dtype=torch_dtype,
            use_safetensors=None if options.allow_pickle else True,
            weights_only=True,
            **placement,
            **hub_options,
        )
        described = ""
        if adapter is not None:
            where = {"local_files_only": offline} | ({"revision": revision} if revision else {})
            model, described = with_adapter(model, adapter, merge=options.merge_adapter, **where)
        tokenizer = _tokenizer_of(source, adapter, hub_options, AutoTokenizer)
    except (BrocaError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # what reads a checkpoint may raise anything
        # of a library that is missing transformers 5.0 to 5.2 raises a ValueError
        missing = isinstance(error, ImportError) or "pip install" in str(error)
        advice = (
            "install what its checkpoint needs (`pip install 'broca[quantized]'` brings torchao)"
            if missing
            else "check that the folder holds config.json, *.safetensors (or pytorch_model*.bin, "
            "with `allow_pickle`) and tokenizer.json"
        )
        raise BadInput(
            f"model '{name}' could not be loaded: {first_line(error)}; {advice}"
        ) from error
    if not options.device_map:
        model = _placed(model, device)
    model.eval()
    model.requires_grad_(False)
    commit = _commit(base, base_revision) if isinstance(source, str) else None
    with _running(name, type(model).__name__):
        gated = GatedModel.wrap(
            model, tokenizer, name=name, components=options.components, source=name,
            revision=commit, remote_code=remote_code, adapter=described,
        )  # fmt: skip
        require_self_test(gated)
    return gated


@contextmanager
def _running(name: str, architecture: str) -> Iterator[None]:
    """Turns whatever a model raises when it is first run into one line.

    Raises:
        UnsupportedModel: It raised something.
    """
    import torch

    try:
        yield
    except (BrocaError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the code of a model may raise anything
        raise UnsupportedModel(
            f"'{name}' ({architecture}) cannot be run on rows of tokens, with padding and a cache "
            f"({type(error).__name__}: {first_line(error)}): it is not a decoder, or this "
            "transformers cannot run it"
        ) from error


def _adapter(name: str, *, revision: str | None, offline: bool) -> AdapterFiles | None:
    """The adapter that a name stands for, if it is one of PEFT and no model."""
    path = Path(name).expanduser()
    if name in SHIPPED_MODELS:
        return None
    if path.is_dir():
        return adapter_in(path)
    if path.exists() or not _may_be_on_hub(name):
        return None
    skip_retries_if_unreachable()
    return adapter_on_hub(name, revision=revision, offline=offline)


def _tokenizer_of(
    source: Path | str, adapter: AdapterFiles | None, options: dict[str, Any], tokenizers: Any
) -> Any:
    """The tokenizer that lies beside an adapter, if one does, else the model's."""
    if adapter is not None and Path(adapter.place, "tokenizer_config.json").is_file():
        return tokenizers.from_pretrained(adapter.place, **{**options, "local_files_only": True})
    return tokenizers.from_pretrained(str(source), **options)


def _placed(model: Any, device: str) -> Any:
    """The model on a device; packed weights stay where their kernels put them."""
    if getattr(model, "hf_quantizer", None) is not None and model.device.type == device:
        return model
    return model.to(device)


def _device(wanted: str | None) -> str:
    """The device that a model is put on: the first GPU by default, if there is one.

    Raises:
        BadInput: torch knows no such device, or this machine does not have it.
    """
    import torch

    if wanted is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(
            f"`device` '{wanted}' cannot be used: {first_line(error)}; use cpu, or cuda:0 where "
            "there is a GPU"
        ) from error
    return wanted


def _commit(name: str, revision: str | None) -> str | None:
    """The commit that a model of the hub was loaded from, as the local cache has it."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(file).parent.name if isinstance(file, str) else None


def load_tokenizer(
    name: str, *, trust_remote_code: bool = False, offline: bool = False
) -> tuple[Any, int]:
    """Loads a model's tokenizer alone.

    Args:
        name: As `load` takes it.
        trust_remote_code: Whether Python files that come with the model may be run.
        offline: Make no network call.

    Returns:
        The tokenizer, and the longest input of the model in tokens.

    Raises:
        UnknownName: No such model.
        BadInput: The folder holds no tokenizer.
    """
    from lm_eval.models.utils import resolve_max_length
    from transformers import AutoTokenizer

    adapter = _adapter(name, revision=None, offline=offline)
    source = _source(name if adapter is None else adapter.base)
    options = {
        "trust_remote_code": trust_remote_code,
        "local_files_only": offline or isinstance(source, Path),
    }
    config = _config(name, source, options)
    try:
        tokenizer = _tokenizer_of(source, adapter, options, AutoTokenizer)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"the tokenizer of model '{name}' could not be loaded: {first_line(error)}; check "
            "that the folder holds tokenizer.json"
        ) from error
    return tokenizer, int(resolve_max_length(text_config(config), tokenizer))


def _source(name: str, *, allow_pickle: bool = True) -> Path | str:
    """Returns the local folder that `name` means, or the hub id."""
    if name in SHIPPED_MODELS:
        return shipped_model_folder(name)
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise BadInput(
                f"folder '{name}' holds no model: config.json is missing; give the folder that "
                "save_pretrained wrote"
            )
        if not any(any(path.glob(pattern)) for pattern in _WEIGHTS):
            raise BadInput(
                f"folder '{name}' holds no weights: no *.safetensors file is in it; copy the "
                "weights there or give another folder"
            )
        if not allow_pickle and not any(path.glob("*.safetensors")):
            raise BadInput(
                f"folder '{name}' holds only pickled weights, which can run code when loaded: "
                "convert them to safetensors (save_pretrained does), or set `allow_pickle`"
            )
        return path
    if path.exists():
        raise BadInput(f"'{name}' is a file, not a model: give the folder that holds config.json")
    if not _may_be_on_hub(name):
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        folders = [str(folder) for folder in beside if (folder / "config.json").is_file()]
        raise UnknownName(
            f"model folder '{name}' does not exist{nearest(str(path), folders)}; check the path"
        )
    return name


def _may_be_on_hub(name: str) -> bool:
    """Whether a name has the form of a hub id, not of a path."""
    local = name.startswith((".", "/", "~")) or name.count("/") > 1 or os.sep * 2 in name
    return bool(name.strip()) and not local


def _config(name: str, source: Path | str, options: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    if not options["local_files_only"]:
        skip_retries_if_unreachable()
    try:
        return AutoConfig.from_pretrained(str(source), **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        if "trust_remote_code" in str(error):
            raise BadInput(
                f"model '{name}' comes with Python files of its own, which are not run by default: "
                "read them, then set `trust_remote_code`"
            ) from error
        if isinstance(source, Path):
            raise BadInput(
                f"model '{name}': its configuration cannot be read: {first_line(error)}"
            ) from error
        raise UnknownName(
            f"model '{name}' is unknown{nearest(name, SHIPPED_MODELS)}; it is not a shipped model "
            f"({', '.join(SHIPPED_MODELS)}), not a local folder, and could not be read from the "
            f"hub: {first_line(error)}"
        ) from error


def _require_decoder(
    name: str, config: Any, *, architecture: str | None = None, remote_code: bool = False
) -> None:
    """Refuses encoder-decoder and encoder-only models by name.

    Args:
        name: What the model is called.
        config: Its configuration.
        architecture: Its class, where it is known; else what the configuration names first.
        remote_code: Whether its class comes with it, so that transformers' lists say nothing.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    declared = architecture or (config.architectures or [config.model_type])[0]
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModel(
            f"'{name}' is an encoder-decoder model ({declared}): broca localizes in decoder-only "
            "language models"
        )
    stated = getattr(config, "auto_map", None) or {}
    classes = {
        name
        for names in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        for name in ((names,) if isinstance(names, str) else names)
    }
    causal = (
        config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        or declared in classes
        or (remote_code and "AutoModelForCausalLM" in stated)
    )
    words = ("CausalLM", "LMHead", "ForConditionalGeneration")
    generates = declared in classes or any(word in declared for word in words)
    bidirectional = not getattr(config, "is_decoder", True) and not generates
    named = architecture or config.architectures
    if not causal or (named and not generates) or bidirectional:
        raise UnsupportedModel(
            f"'{name}' is not a causal language model ({declared}, type {config.model_type}): "
            "give a decoder-only model with a language-model head"
        )
