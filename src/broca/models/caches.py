"""Key/value caches of batches in decoding: removes rows and padding, and appends rows.

transformers' caches are lists of layers; the plain kind keeps keys and values as `(rows, KV heads,
tokens, head_dim)`. Rows can be removed from every kind. Padding can be trimmed and batches can be
joined only if every layer is of the plain kind (`is_plain`): a sliding window or a recurrent state
has no token axis to trim.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class Reread:
    """Replaces the cache of a model without one: its tokens are read again at every step.

    Attributes:
        tokens: All tokens so far, `(rows, tokens)`.
    """

    def __init__(self, tokens: Tensor) -> None:
        self.tokens = tokens

    def reorder_cache(self, rows: Tensor) -> None:
        """Keeps `rows`, in that order, like the caches of transformers."""
        self.tokens = self.tokens[rows.to(self.tokens.device)]


def is_plain(cache: Any) -> bool:
    """Whether every layer keeps all keys and values, with one entry for each token."""
    from transformers.cache_utils import DynamicLayer

    return all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None]))


def select_rows(cache: Any, rows: Tensor) -> None:
    """Keeps `rows` of a cache, in that order; a row may be named more than once."""
    cache.reorder_cache(rows)


def copy_cache(cache: Any) -> Any:
    """Returns a copy of a cache, which can be extended without changing the original."""
    return copy.deepcopy(cache)


def repeated(cache: Any, rows: Tensor, *, tokens: int, first_layer: int) -> Any:
    """Returns a plain cache of other rows with its first tokens; the original is unchanged.

    Args:
        cache: The original cache.
        rows: Rows of the new cache; a row may occur several times.
        tokens: Number of first tokens to keep.
        first_layer: Lowest layer that will read it; for lower layers the cache keeps only its
            length.
    """
    new_cache = copy.copy(cache)
    new_cache.layers = [copy.copy(layer) for layer in cache.layers]
    for number, layer in enumerate(new_cache.layers):
        if number < first_layer:
            shape = (len(rows), -1, -1, -1)
            layer.keys = layer.keys[:1, :, :tokens].expand(shape)
            layer.values = layer.values[:1, :, :tokens].expand(shape)
        else:
            layer.keys = layer.keys[:, :, :tokens][rows]
            layer.values = layer.values[:, :, :tokens][rows]
    return new_cache


def trim_left(cache: Any, attention: Tensor) -> Tensor:
    """Removes positions of a plain cache that are padding in every row; other caches are unchanged.

    Args:
        cache: Keys and values of left-padded rows.
        attention: Their attention mask, `(rows, tokens)`.

    Returns:
        The attention mask of the remaining positions.
    """
    padding = int(attention.argmax(1).min())
    if not padding or not is_plain(cache):
        return attention
    for layer in cache.layers:
        layer.keys = layer.keys[:, :, padding:]
        layer.values = layer.values[:, :, padding:]
    return attention[:, padding:]


def join(cache: Any, attention: Tensor, other: Any, others_attention: Tensor) -> Tensor:
    """Appends the rows of a plain cache to another, padding the shorter one on the left.

    Args:
        cache: The cache that is extended.
        attention: Its attention mask, `(rows, tokens)`.
        other: The cache of the appended rows.
        others_attention: Their attention mask.

    Returns:
        The attention mask of all rows.
    """
    for layer, other_layer in zip(cache.layers, other.layers, strict=True):
        layer.keys = _stack(layer.keys, other_layer.keys, dim=2)
        layer.values = _stack(layer.values, other_layer.values, dim=2)
    return _stack(attention, others_attention, dim=1)


def _stack(first: Tensor, second: Tensor, *, dim: int) -> Tensor:
    """Concatenates two tensors by rows; pads the shorter one along `dim` on the left."""
    length, behind = max(first.shape[dim], second.shape[dim]), (0, 0) * (first.ndim - 1 - dim)
    return torch.cat(
        [
            nn.functional.pad(tensor, (*behind, length - tensor.shape[dim], 0))
            for tensor in (first, second)
        ]
    )
