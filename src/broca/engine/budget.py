"""How much fits a batch: tokens, found from the free memory and halved when it runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from broca.errors import OutOfMemory
from broca.models import GatedModel, text_config

CPU_TOKENS = 4096
"""Tokens of a batch on a CPU: small batches stay in its caches."""

_CPU_CACHED_TOKEN = 1 / 16
"""What a cached token costs in a batch on a CPU, in tokens that are read: memory is not short."""


SAFETY = 0.2
"""Share of a GPU's free memory that a batch leaves alone at first."""

_shares: dict[torch.device, float] = {}
"""Of every device on which memory ran out in this process, the share of the free memory that
batches take since."""


class Budget:
    """The token budget of one engine.

    It begins with all of the free memory but `SAFETY`, by estimate. Where memory runs out it is
    halved, and so is what later engines of this process take of the same device.

    Args:
        model: The model, for its size and device.
        tokens: The budget to begin with; found from the free memory if None.
    """

    def __init__(self, model: GatedModel, tokens: int | None) -> None:
        self._device = model.device
        self.tokens = tokens or _from_memory(model)
        """Most tokens of a batch at present."""
        self._cached = 1.0 if model.device.type == "cuda" else _CPU_CACHED_TOKEN

    def rows(self, length: int, *, cached: int = 0) -> int:
        """Rows of `length` new tokens on top of `cached` ones that fit a batch, at least 1."""
        return max(1, int(self.tokens / max(1.0, length + self._cached * cached)))

    def attempt(self, run: Callable[[], None], *, rows: int) -> bool:
        """Runs something and says whether memory sufficed.

        Where it did not, memory is freed and the budget halved; the caller runs the same rows
        again.

        Args:
            run: What may run out of memory.
            rows: Rows at stake: a single one that does not fit is an error.

        Raises:
            OutOfMemory: Not even one row fits.
        """
        try:
            run()
        except torch.OutOfMemoryError as error:
            if rows <= 1:
                raise OutOfMemory(
                    "not even one row fits the memory of the device: use a smaller model or "
                    "`dtype`, `device_map` auto, or a shorter task; what was measured is kept"
                ) from error
        else:
            return True
        gc.collect()  # outside the except: the traceback holds tensors alive
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.tokens = max(1, self.tokens // 2)
        _shares[self._device] = share_of(self._device) / 2
        return False


def share_of(device: torch.device) -> float:
    """The share of a device's free memory that a batch takes."""
    return _shares.get(device, 1 - SAFETY)


def _from_memory(model: GatedModel) -> int:
    """Tokens that take a GPU's free memory but for the safety; a fixed number on a CPU.

    Counts keys and values, a few activations of the widest layer, and logits; the estimate is
    coarse, and halving mends it where it was too bold. A model that is spread over several GPUs
    has its keys and values where its layers are: the fullest GPU decides, as if it held them all.
    """
    if model.device.type != "cuda":
        return CPU_TOKENS
    devices = {one.device for one in model.model.parameters() if one.device.type == "cuda"}
    free = min(torch.cuda.mem_get_info(device)[0] for device in devices or {model.device})
    config = text_config(model.model.config)
    size = 4 if model.dtype == "float32" else 2
    keys_values = sum(2 * one.kv_heads * one.head_dim * size for one in model.structure.projections)
    widest = max(int(getattr(config, "intermediate_size", 0) or 0), 4 * int(config.hidden_size))
    logits = 4 * int(config.vocab_size) // 16  # one position in many is kept
    return max(
        1024, int(share_of(model.device) * free / (keys_values + 6 * widest * size + logits))
    )
