"""The digest of a model's weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


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
    addresses: set[int] = set()
    waiting = _offloaded(model)
    tensors: list[tuple[str, Callable[[], Tensor]]] = []
    for name, tensor in _tensors(model):
        if tensor.is_meta and name in waiting:
            tensors.append((name, waiting[name]))
            continue
        if tensor.numel() and tensor.data_ptr() in addresses:
            continue
        addresses.add(tensor.data_ptr())
        tensors.append((name, tensor.detach))
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(lambda pair: _digest(pair[0], _cast(pair[1](), dtype)), tensors))
    return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()


def _offloaded(model: nn.Module) -> dict[str, Callable[[], Tensor]]:
    """Returns readers of the weights that accelerate keeps in CPU memory or on disk."""
    readers: dict[str, Callable[[], Tensor]] = {}
    for path, module in model.named_modules():
        weights: Any = getattr(getattr(module, "_hf_hook", None), "weights_map", None)
        if weights is None:
            continue
        tensors = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_buffers(recurse=False)),
        }
        for name in tensors:
            readers[f"{path}.{name}" if path else name] = partial(weights.__getitem__, name)
    return readers


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Returns every tensor of a model by name; for packed weights, their parts."""
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, Tensor):
            yield from _parts(name, value)


def _parts(name: str, tensor: Any) -> Iterator[tuple[str, Tensor]]:
    if not is_traceable_wrapper_subclass(tensor):
        yield name, tensor
        return
    for part in sorted(tensor.__tensor_flatten__()[0]):
        yield from _parts(f"{name}.{part}", getattr(tensor, part))


def _cast(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)


def _digest(name: str, tensor: Tensor) -> bytes:
    state = hashlib.blake2b(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
    content = tensor.detach().contiguous().cpu().flatten().view(torch.uint8)
    state.update(content.numpy().data)
    return state.digest()
