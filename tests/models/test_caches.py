"""Caches of keys and values give the same logits when rows are cut, copied, trimmed or joined."""

import pytest
import torch

from broca.models.caches import (
    copy_cache,
    is_plain,
    join,
    left_padded,
    repeated,
    select_rows,
    trim_left,
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


def continued(tiny, cache, attention, following):
    """Returns the logits after one more token in each row."""
    attention = torch.nn.functional.pad(attention, (0, 1), value=1)
    tokens = torch.tensor(following)[:, None]
    return tiny.forward(tokens, attention, keep=1, cache=cache)[0][:, -1]


def uncached(tiny, prompt, following):
    """Returns the logits of a prompt and one more token, without a cache."""
    tokens = torch.tensor([[*prompt, following]])
    return tiny.forward(tokens, torch.ones_like(tokens), keep=1)[0][0, -1]


def expected(tiny, rows):
    """Returns the logits of some prompts with their next tokens."""
    return torch.stack([uncached(tiny, PROMPTS[row], NEXT[row]) for row in rows])


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.inference_mode():
        yield


def test_selected_rows_go_on_in_the_order_given(tiny):
    """Rows can be selected in any order and repeatedly."""
    cache, attention = prefilled(tiny, PROMPTS)
    rows = torch.tensor([2, 0, 2])
    select_rows(cache, rows)
    logits = continued(tiny, cache, attention[rows], [NEXT[row] for row in rows])
    torch.testing.assert_close(logits, expected(tiny, rows))


def test_a_copy_is_extended_and_the_original_is_not(tiny):
    """Extending a copy leaves the original unchanged."""
    cache, attention = prefilled(tiny, PROMPTS)
    continued(tiny, copy_cache(cache), attention, (50, 51, 52))
    assert cache.get_seq_length() == 4
    torch.testing.assert_close(continued(tiny, cache, attention, NEXT), expected(tiny, range(3)))


def test_padding_that_all_rows_have_is_trimmed(tiny):
    """Columns that are padding in all rows are removed, and no logit changes."""
    cache, attention = prefilled(tiny, PROMPTS, padding=3)
    trimmed = trim_left(cache, attention)
    assert cache.get_seq_length() == 4
    torch.testing.assert_close(trimmed, attention[:, 3:])
    assert trim_left(cache, trimmed) is trimmed
    logits = continued(tiny, cache, trimmed, NEXT)
    torch.testing.assert_close(logits, expected(tiny, range(3)))


def test_joined_caches_go_on_together(tiny):
    """A shorter cache is padded on the left and joined, and no logit changes."""
    cache, attention = prefilled(tiny, PROMPTS[:1])
    other, others_attention = prefilled(tiny, PROMPTS[1:])
    shorter = torch.nn.functional.pad(others_attention, (1, 0))
    expected_attention = torch.cat([attention, shorter])
    attention = join(cache, attention, other, others_attention)
    torch.testing.assert_close(attention, expected_attention)
    torch.testing.assert_close(continued(tiny, cache, attention, NEXT), expected(tiny, range(3)))


def test_repeated_rows_are_cut_to_their_first_tokens(tiny):
    """Rows are repeated as named and cut to their first tokens; the original keeps its length."""
    cache, _ = prefilled(tiny, [PROMPTS[0], PROMPTS[0][::-1]])
    rows = torch.tensor([1, 0, 1])
    selected = repeated(cache, rows, tokens=3, first_layer=0)
    assert (selected.get_seq_length(), cache.get_seq_length()) == (3, 4)
    logits = continued(tiny, selected, torch.ones(3, 3, dtype=torch.long), NEXT)
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
