"""Caches of keys and values give the same logits when rows are cut, copied, trimmed or joined."""

import pytest
import torch

from broca.models.caches import (
    is_plain,
    left_padded,
    repeated,
)

PROMPTS = [(5, 6, 7, 8), (9, 10), (11, 12, 13)]
NEXT = (40, 41, 42)


def prefilled(tiny, prompts, *, padding=0):
    """Returns a cache of left-padded prompts and its attention mask."""
    length = max(map(len, prompts)) + padding
    tokens = torch.tensor([[0] * (length - len(prompt)) + list(prompt) for prompt in prompts])
    attention = (torch.arange(length) >= length - torch.tensor([[len(p)] for p in prompts])).long()
    _, cache = tiny.forward(tokens, attention, keep=1, use_cache=True)
    return cache, attention


def uncached(tiny, prompt, following):
    """Returns the logits of a prompt and one more token, without a cache."""
    tokens = torch.tensor([[*prompt, following]])
    return tiny.forward(tokens, torch.ones_like(tokens), keep=1)[0][0, -1]


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.inference_mode():
        yield


def test_repeated_rows_are_cut_to_their_first_tokens(tiny):
    """Rows are repeated as named and cut to their first tokens; the original keeps its length."""
    cache, _ = prefilled(tiny, [PROMPTS[0], PROMPTS[0][::-1]])
    rows = torch.tensor([1, 0, 1])
    selected = repeated(cache, rows, tokens=3, first_layer=0)
    assert (selected.get_seq_length(), cache.get_seq_length()) == (3, 4)
    attention = torch.ones(3, 4, dtype=torch.long)
    logits = tiny.forward(torch.tensor(NEXT)[:, None], attention, keep=1, cache=selected)[0][:, -1]
    prompts = [(PROMPTS[0][::-1], PROMPTS[0])[row] for row in (0, 1, 0)]
    for row, (prompt, following) in enumerate(zip(prompts, NEXT, strict=True)):
        torch.testing.assert_close(logits[row], uncached(tiny, prompt[:3], following))


def test_layers_below_the_first_take_no_memory(tiny):
    """Layers below the first take no memory for rows; layers above hold the rows' values."""
    cache, _ = prefilled(tiny, PROMPTS)
    selected = repeated(cache, torch.tensor([2, 1]), tokens=2, first_layer=1)
    below, above = selected.layers
    assert below.keys.shape == above.keys.shape == (2, 2, 2, 8)
    assert below.keys.stride(0) == below.values.stride(0) == 0
    assert torch.equal(above.keys, cache.layers[1].keys[[2, 1], :, :2])
    assert torch.equal(above.values, cache.layers[1].values[[2, 1], :, :2])


def test_only_caches_of_all_keys_and_values_are_plain(tiny):
    """A cache with a sliding window, or without layers, is not plain."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicSlidingWindowLayer

    cache, _ = prefilled(tiny, PROMPTS)
    assert is_plain(cache)
    windowed = DynamicCache()
    windowed.layers = [*cache.layers, DynamicSlidingWindowLayer(sliding_window=4)]
    assert not is_plain(windowed)
    assert not is_plain(object())


def test_padding_is_on_the_left_and_not_attended_to():
    """Sequences end at the last column, and padding on their left has attention 0."""
    tokens, attention = left_padded([(5, 6, 7), (8,)], device=torch.device("cpu"))
    assert tokens.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert attention.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert tokens.dtype == attention.dtype == torch.int64
