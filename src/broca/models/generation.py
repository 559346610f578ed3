"""Greedy decoding by transformers' `generate`, whatever settings a model brings for it."""

import copy
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from transformers import GenerationConfig

from broca.options import APPLIED_SETTINGS

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
        own = model.generation_config
        model.generation_config = copy.deepcopy(own)
        for name, value in vars(GenerationConfig()).items():
            if name not in _ALWAYS_KEPT and name not in keep:
                setattr(model.generation_config, name, value)
        try:
            yield
        finally:
            model.generation_config = own
