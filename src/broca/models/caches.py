"""Key/value caches of left-padded batches: removes rows and padding, appends rows, adds tokens.

transformers' caches are lists of layers; the plain kind keeps keys and values as `(rows, KV heads,
tokens, head_dim)`. Rows can be removed from every kind. Padding can be trimmed, batches can be
joined and prefixes shortened only if every layer is of the plain kind (`is_plain`): a recurrent
state has no token axis. Layers with a sliding window are replaced by plain ones (`whole_cache`),
because the attention mask limits the window anyway.

All padding of a row stands before its first token, never between its tokens: windows, biases and
recurrent states that count positions of the batch then see what they see in the row alone.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer


def cache_of(output: Any) -> Any | None:
    """Returns the cache of a model's output; None without one.

    transformers renames `past_key_values` to `cache`: 5.24 knows both, 5.40 will not.
    """
    renamed = getattr(output, "cache", None)
    return getattr(output, "past_key_values", None) if renamed is None else renamed


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
    """Whether every layer keeps all keys and values, with one entry for each token.

    Layers that read another layer's keys store nothing.
    """
    layers = getattr(cache, "layers", [None])
    return all(type(layer).__name__ in ("DynamicLayer", "DummyLayer") for layer in layers)


def whole_cache(config: Any, own: Any) -> Any | None:
    """Returns an empty plain cache for a model whose own cache limits layers to a window.

    Args:
        config: Configuration of the model.
        own: A cache that the model made itself.

    Returns:
        The cache; None if the model's own cache is plain, or cannot be replaced by a plain one.
    """
    if type(own) is not DynamicCache or is_plain(own):
        return None
    cache = DynamicCache(config=config)
    cache.layers = [
        DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer
        for layer in cache.layers
    ]
    return cache if is_plain(cache) else None


def left_padded(rows: Sequence[Sequence[int]], *, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns tokens `(rows, longest)` padded with 0 on the left, and their attention mask."""
    longest = max(len(row) for row in rows)
    tokens = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    for index, row in enumerate(rows):
        tokens[index, longest - len(row) :] = row
        mask[index, longest - len(row) :] = 1
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


class Continuation(NamedTuple):
    """Rows that run together, behind cached tokens or without.

    Attributes:
        members: Indices of the rows in the order of the batch.
        tokens: New tokens, `(rows, new)`.
        attention: 1 for tokens and 0 for padding, `(rows, past + new)`.
        cache: Keys and values of the `past` tokens; None without them.
    """

    members: list[int]
    tokens: Tensor
    attention: Tensor
    cache: Any


def continuations(
    cache: Any,
    prefixes: Sequence[int],
    members: Sequence[tuple[int, Sequence[int]]],
    *,
    rows: int,
    device: torch.device,
) -> Iterator[Continuation]:
    """Lays out rows behind prefixes that a cache holds, without padding between their tokens.

    With a plain cache, all rows of a batch read the same number of new tokens: a row with a short
    suffix reads the last tokens of its prefix again, and uses fewer of the cached ones. With
    another cache, a batch has suffixes of one length.

    Args:
        cache: Keys and values of left-padded prefixes; its last use may change it.
        prefixes: Number of tokens of each prefix.
        members: Row of the cache and all tokens (prefix and suffix) of each row.
        rows: Maximum number of rows of a batch.
        device: Device of the tokens.
    """
    suffixes = [len(tokens) - prefixes[group] for group, tokens in members]
    # rows of one prefix and length are neighbours: their cached tokens are copied together
    order = sorted(range(len(members)), key=lambda row: (-suffixes[row], members[row][0]))
    plain = is_plain(cache)
    runs = [order] if plain else [list(run) for _, run in groupby(order, suffixes.__getitem__)]
    chunks = [run[at : at + rows] for run in runs for at in range(0, len(run), rows)]
    for number, chunk in enumerate(chunks):
        new = suffixes[chunk[0]]
        groups = [members[member][0] for member in chunk]
        kept = [max(0, len(members[member][1]) - new) for member in chunk]
        read = [members[member][1][skip:] for member, skip in zip(chunk, kept, strict=True)]
        tokens, attention = left_padded(read, device=device)
        if plain:
            past = _cut(cache, groups, [prefixes[group] for group in groups], kept)
            slots = max(kept)
        else:
            past = cache if number == len(chunks) - 1 else copy.deepcopy(cache)
            past.reorder_cache(torch.tensor(groups, device=device))
            slots = max(prefixes)
        padding = slots - torch.tensor(kept, device=device)[:, None]
        present = (torch.arange(slots, device=device) >= padding).to(attention)
        yield Continuation(chunk, tokens, torch.cat([present, attention], 1), past)


def _cut(cache: Any, rows: list[int], lengths: list[int], kept: list[int]) -> Any:
    """Returns a plain cache of the first `kept` tokens of some rows, padded on the left.

    Args:
        cache: The original cache of left-padded rows, which is unchanged.
        rows: Its row for every row of the new cache.
        lengths: Number of tokens of these rows.
        kept: Number of first tokens to keep of each.
    """
    width = max(kept)
    blocks = [(key, len(list(run))) for key, run in groupby(zip(rows, lengths, kept, strict=True))]

    def cut(_layer: int, tensor: Tensor) -> Tensor:
        pieces = []
        for (row, length, count), repeats in blocks:
            start = tensor.shape[2] - length
            piece = tensor[row : row + 1, :, start : start + count]
            padded = nn.functional.pad(piece, (0, 0, width - count, 0))
            pieces.append(padded.expand(repeats, -1, -1, -1))
        return torch.cat(pieces)

    return _changed(cache, cut)


def _changed(cache: Any, change: Callable[[int, Tensor], Tensor]) -> Any:
    """Returns a plain cache with other keys and values, layer by layer."""
    new_cache = copy.copy(cache)
    new_cache.layers = [copy.copy(layer) for layer in cache.layers]
    for number, layer in enumerate(new_cache.layers):
        if isinstance(layer.keys, Tensor):
            layer.keys, layer.values = change(number, layer.keys), change(number, layer.values)
    return new_cache


def repeated(cache: Any, rows: Tensor, *, tokens: int, first_layer: int) -> Any:
    """Returns a plain cache of other rows with its first tokens; the original is unchanged.

    Args:
        cache: The original cache.
        rows: Rows of the new cache; a row may occur several times.
        tokens: Number of first tokens to keep.
        first_layer: Lowest layer that will read it; for lower layers the cache keeps only its
            length.
    """

    def select(layer: int, tensor: Tensor) -> Tensor:
        if layer < first_layer:
            return tensor[:1, :, :tokens].expand(len(rows), -1, -1, -1)
        return tensor[:, :, :tokens][rows]

    return _changed(cache, select)


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
        if isinstance(layer.keys, Tensor):
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
        if isinstance(layer.keys, Tensor):
            layer.keys = _stack(layer.keys, other_layer.keys, dim=2)
            layer.values = _stack(layer.values, other_layer.values, dim=2)
    return _stack(attention, others_attention, dim=1)


def _stack(first: Tensor, second: Tensor, *, dim: int) -> Tensor:
    """Concatenates two tensors by rows; pads the shorter one along `dim` on the left."""
    length, behind = max(first.shape[dim], second.shape[dim]), (0, 0) * (first.ndim - 1 - dim)
    missing = [length - tensor.shape[dim] for tensor in (first, second)]
    sides = zip((first, second), missing, strict=True)
    return torch.cat([nn.functional.pad(side, (*behind, count, 0)) for side, count in sides])
