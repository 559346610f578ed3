"""A model in use: frozen, not compiled, decoding greedily; the digest of what it answers by."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import Any, ClassVar
from unittest.mock import patch
from uuid import uuid4
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from transformers import GenerationConfig

from broca.errors import BadInput
from broca.options import APPLIED_SETTINGS
from broca.sources import code_digest

_ALWAYS_KEPT = {
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "use_cache",
    "cache_implementation", "cache_config",
}  # fmt: skip
"""Settings of a `generation_config` that hold for every text: tokens and the cache."""

OF_SAMPLING = (
    "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff",
    *APPLIED_SETTINGS,
)  # fmt: skip
"""Settings of a `generation_config` that hold for sampled texts."""

_configs = RLock()


class Usage:
    """Counts the users of a model, from any thread, and restores its state after the last one.

    A model has one, which all its wrappers and copies around the same weights share: the weights
    are frozen once and restored when the last user is done. `Usage.of` returns it.

    Args:
        model: The transformers model.
    """

    _of_models: ClassVar[WeakValueDictionary[int, Usage]] = WeakValueDictionary()

    def __init__(self, model: nn.Module, *, belongs_to_caller: bool = False) -> None:
        self._model = model  # the reference keeps the model's id valid
        self._belongs_to_caller = belongs_to_caller
        self._lock = RLock()
        self._users: list[tuple[int, nn.Module]] = []  # thread and modules of each
        self._restored = ExitStack()
        self._fingerprint = ""
        self.ablated: list[str] = []
        """Names of the components that `GatedModel.ablated` ablates now."""

    @classmethod
    def of(cls, model: nn.Module, *, belongs_to_caller: bool) -> Usage:
        """Returns the usage of a model, a new one at its first wrapper.

        Args:
            model: The transformers model.
            belongs_to_caller: Whether the caller may change its weights between two uses.
        """
        usage = cls._of_models.setdefault(id(model), cls(model))
        if belongs_to_caller and not usage._belongs_to_caller:
            usage._belongs_to_caller, usage._fingerprint = True, ""
        return usage

    def __reduce__(self) -> Any:
        return partial(Usage, belongs_to_caller=self._belongs_to_caller), (self._model,)

    @contextmanager
    def held(self, model: nn.Module, name: str) -> Iterator[None]:
        """A context in which the model is in evaluation mode and its weights are frozen.

        In the calling thread, `torch.autocast` is off.

        Args:
            model: What is run: the model, or a copy of its modules around the same weights.
            name: Name of the model, for the message.

        Raises:
            BadInput: Another thread uses it, whose gates would act here too.
        """
        user = get_ident(), model
        with self._lock:
            self._require_alone(model, name)
            self._users.append(user)
            if len(self._users) == 1:
                self._freeze()
        try:
            with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
                yield
        finally:
            with self._lock:
                self._users.remove(user)
                if not self._users:
                    self._restored.close()
                    if self._belongs_to_caller:
                        self._fingerprint = ""

    @contextmanager
    def ablating(self, names: Sequence[str], model: nn.Module, name: str) -> Iterator[None]:
        """A context in which names are among `ablated`.

        Args:
            names: Names of components.
            model: What they are ablated in: the model, or a copy.
            name: Name of the model, for the message.

        Raises:
            BadInput: Another thread uses it, and would take its answers for intact ones.
        """
        with self._lock:
            if names:
                self._require_alone(model, name)
            self.ablated += names
        try:
            yield
        finally:
            for ablated in names:
                self.ablated.remove(ablated)

    def _require_alone(self, model: nn.Module, name: str) -> None:
        if any(one is model and thread != get_ident() for thread, one in self._users):
            raise BadInput(
                f"another thread uses model '{name}', and the gates of one would act on the other: "
                "wait until it ends, or give each thread a `copy()` of the model"
            )

    def _freeze(self) -> None:
        def change(owner: Any, name: str, value: Any) -> None:
            self._restored.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        for module in self._model.modules():
            if module.training:
                # the attribute, not eval(): a module's own eval() may change its weights (merged
                # adapters)
                change(module, "training", False)
            # a compiled forward pass would skip later hooks
            if module._compiled_call_impl is not None:
                change(module, "_compiled_call_impl", None)
            if plain := getattr(vars(module).get("forward"), "_torchdynamo_orig_callable", None):
                change(module, "forward", plain)
        for weight in self._model.parameters():
            if weight.requires_grad:
                change(weight, "requires_grad", False)

    @property
    def fingerprint(self) -> str:
        """Returns the digest of the weights, computed again in each use of a caller's model."""
        with self._lock:
            digest = self._fingerprint or fingerprint(self._model)
            if self._users or not self._belongs_to_caller:
                self._fingerprint = digest
            return digest


@contextmanager
def greedy(model: Any, *, keep: Collection[str] = ()) -> Iterator[None]:
    """A context in which transformers' `generate` decodes one text greedily.

    The model's own `generation_config` does not hold within: its settings, such as
    `num_return_sequences`, would apply to every call, and some cannot be replaced by arguments.

    Args:
        model: A model of transformers.
        keep: Settings that hold nevertheless.
    """
    with _configs:  # threads may generate with the same model
        config = copy.deepcopy(model.generation_config)
        for name, value in vars(GenerationConfig()).items():
            if name not in _ALWAYS_KEPT and name not in keep:
                setattr(config, name, value)
        # with a static cache on a GPU it would compile the forward pass, which skips later hooks
        config.disable_compile = True
        with patch.object(model, "generation_config", config):
            yield


def fingerprint(model: nn.Module, *, dtype: torch.dtype | None = None) -> str:
    """Returns a digest of every weight: name, shape, type and bytes.

    Tied weights are read once, and offloaded weights from their storage. Digests of tensors are
    computed in threads (hashing releases the interpreter's lock) and combined in the order of the
    names.

    Args:
        model: The model.
        dtype: Number format in which the weights are digested; by default the model's own.

    Returns:
        32 hexadecimal digits.
    """
    places: set[tuple[int, int]] = set()
    waiting = _offloaded(model)
    tensors: list[tuple[str, Callable[[], Tensor]]] = []
    named = sorted(model.state_dict().items())
    for name, tensor in (
        part for pair in named if isinstance(pair[1], Tensor) for part in _parts(*pair)
    ):
        if tensor.is_meta and name in waiting:
            tensors.append((name, waiting[name]))
            continue
        place = tensor.data_ptr(), tensor.numel()  # a part may begin where the whole does
        if tensor.numel() and place in places:
            continue
        places.add(place)
        tensors.append((name, tensor.detach))
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(lambda pair: _digest(pair[0], pair[1](), dtype), tensors))
    return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()


_NOT_OF_ANSWERS = frozenset(
    {
        "_name_or_path", "name_or_path", "_commit_hash", "transformers_version",
        "_from_model_config", "use_cache", "dtype", "torch_dtype",
    }
)  # fmt: skip
"""Settings that say where a model is from, or that its weights show."""


def settings_of(model: Any, tokenizer: Any) -> str:
    """Returns all that determines a model's answers besides its weights, as JSON.

    It holds the model's class, the files of its modules' classes, its configuration, its settings
    for generation, the implementations of attention and of experts, the active adapters, the
    caller's hooks, and the tokenizer with its chat template.

    Args:
        model: A model of transformers.
        tokenizer: Its tokenizer, or None.
    """
    config, generation = model.config, getattr(model, "generation_config", None)
    parts = (getattr(config, name, None) for name in getattr(config, "sub_configs", ()))
    kinds = {kind for kind in map(type, model.modules()) if _origin(kind) != "torch"}
    settings = {
        "class": type(model).__qualname__,
        "code": set(map(code_digest, kinds)),
        "config": config.to_dict(),
        "generation": None if generation is None else generation.to_dict(),
        "implementations": [
            [getattr(part, f"_{kind}_implementation", None) for kind in ("attn", "experts")]
            for part in (config, *parts)
        ],
        "adapters": [
            [name, *(getattr(module, key, None) for key in _OF_ADAPTERS)]
            for name, module in model.named_modules()
            if hasattr(module, "active_adapters") and hasattr(module, "disable_adapters")
        ],
        "hooks": [
            (_PROCESS, number)
            for module in model.modules()
            for number, hook in (module._forward_pre_hooks | module._forward_hooks).items()
            if _origin(hook) not in _OF_LIBRARIES
        ],
        "tokenizer": None if tokenizer is None else tokenizer_settings(tokenizer),
    }
    return json.dumps(_plain(settings), sort_keys=True)


def tokenizer_text(tokenizer: Any) -> str | None:
    """Returns a fast tokenizer as JSON, without how its last call padded; None of a slow one."""
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is not None and (fast.padding or fast.truncation):
        fast = copy.deepcopy(fast)
        fast.no_padding()
        fast.no_truncation()
    return None if fast is None else fast.to_str()


def tokenizer_settings(tokenizer: Any) -> dict[str, Any]:
    """Returns all that determines what a tokenizer does."""
    text = tokenizer_text(tokenizer)
    return {
        "words": tokenizer.get_vocab() if text is None else json.loads(text),
        "special": tokenizer.special_tokens_map,
        "chat_template": getattr(tokenizer, "chat_template", None),
        "adds": [getattr(tokenizer, f"add_{end}_token", None) for end in ("bos", "eos")],
    }


_PROCESS = uuid4().hex
"""What tells a caller's hooks from those of other processes: they may do anything."""

_OF_LIBRARIES = {"broca", "torch", "transformers", "accelerate", "peft"}
"""Packages whose hooks change no answer, or do what other settings say."""


def _origin(code: Any) -> str:
    """Returns the top package of a function, a class or the class of an object."""
    return str(getattr(getattr(code, "func", code), "__module__", "")).partition(".")[0]


_OF_ADAPTERS = ("active_adapters", "disable_adapters", "merged_adapters", "scaling")
"""What PEFT says of the adapters of a layer."""


def _plain(value: Any) -> Any:
    """Returns a value of JSON, without what determines no answer; keys and sets in order."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if key not in _NOT_OF_ANSWERS}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _offloaded(model: nn.Module) -> dict[str, Callable[[], Tensor]]:
    """Returns readers of the weights that accelerate keeps in CPU memory or on disk."""
    readers: dict[str, Callable[[], Tensor]] = {}
    for path, module in model.named_modules():
        weights: Any = getattr(getattr(module, "_hf_hook", None), "weights_map", None)
        if weights is None:
            continue
        for name in (*module._parameters, *module._buffers):
            readers[f"{path}.{name}" if path else name] = partial(weights.__getitem__, name)
    return readers


def _parts(name: str, tensor: Any) -> Iterator[tuple[str, Tensor]]:
    """Returns a tensor with its name; of packed weights, their parts."""
    if not is_traceable_wrapper_subclass(tensor):
        yield name, tensor
        return
    for part in sorted(tensor.__tensor_flatten__()[0]):
        yield from _parts(f"{name}.{part}", getattr(tensor, part))


def _digest(name: str, tensor: Tensor, dtype: torch.dtype | None) -> bytes:
    if dtype is not None and tensor.is_floating_point():
        tensor = tensor.to(dtype)
    state = hashlib.blake2b(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
    content = tensor.detach().contiguous().cpu().flatten().view(torch.uint8)
    state.update(content.numpy().data)
    return state.digest()
