"""The token budget of a batch, derived from the free memory and halved when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from broca.errors import OutOfMemory, is_shortage
from broca.models import GatedModel, text_config

CPU_TOKENS = 4096
"""Tokens of a batch on a CPU: small batches fit into its caches."""

_CPU_CACHED_TOKEN = 1 / 16
"""Cost of a cached token in a batch on a CPU, in read tokens: memory is not scarce there."""


SAFETY = 0.2
"""Share of a GPU's free memory that a batch initially leaves free."""

RowT = TypeVar("RowT")
ResultT = TypeVar("ResultT")

_shares: dict[torch.device, float] = {}
"""For each device on which memory ran out in this process: the share of the free memory that
batches use since then."""


class Budget:
    """The token budget of an engine.

    The initial budget uses the estimated free memory except a share of `SAFETY`. If memory runs
    out, the budget is halved, and so is the share of memory of later engines of this process on the
    same device.

    Args:
        model: The model, for its size and device.
        tokens: The initial budget; None derives it from the free memory.
    """

    def __init__(self, model: GatedModel, tokens: int | None) -> None:
        self._model = model
        self._device = model.device
        self.tokens = tokens or _from_memory(model)
        """Current maximum number of tokens of a batch."""
        self._cached = 1.0 if model.device.type == "cuda" else _CPU_CACHED_TOKEN

    def rows(self, length: int, *, cached: int = 0) -> int:
        """Returns how many rows of `length` new and `cached` past tokens fit a batch (>= 1)."""
        return max(1, int(self.tokens / max(1.0, length + self._cached * cached)))

    def padded_together(self, lengths: Sequence[int]) -> int:
        """Returns how many first rows may be padded to one length; at least one.

        All of them, unless the model was not proved to leave padded rows what they are alone.
        """
        if len(set(lengths)) <= 1 or self._model.sharing(max(lengths)).padding:
            return len(lengths)
        return next(row for row, length in enumerate(lengths) if length != lengths[0])

    def in_batches(
        self,
        rows: Sequence[RowT],
        run: Callable[[Sequence[RowT]], ResultT],
        *,
        length: Callable[[RowT], int],
        cost: int = 1,
        cached: int = 0,
    ) -> Iterator[tuple[Sequence[RowT], ResultT]]:
        """Runs rows in batches that fit the budget, and again in smaller ones if memory runs out.

        Args:
            rows: The rows, longest first.
            run: Runs a batch; it may run out of memory.
            length: Returns the number of new tokens of a row.
            cost: Cost of a new token in the budget.
            cached: Number of past tokens of each row.

        Yields:
            Each batch that fitted memory, and its result.

        Raises:
            OutOfMemory: A single row does not fit.
        """
        done = 0
        while done < len(rows):
            most = self.rows(cost * length(rows[done]), cached=cached)
            batch = rows[done : done + most]
            batch = batch[: self.padded_together([length(row) for row in batch])]
            result = self.attempt(partial(run, batch), rows=len(batch))
            if result is not None:
                done += len(batch)
                yield batch, *result

    def attempt(self, run: Callable[[], ResultT], *, rows: int) -> tuple[ResultT] | None:
        """Runs a function that may run out of memory.

        If it does, memory is freed and the budget halved; the caller runs the same rows again.

        Args:
            run: The function.
            rows: Number of its rows: a single row that does not fit is an error.

        Returns:
            Its result, in a tuple; None if memory did not suffice.

        Raises:
            OutOfMemory: A single row does not fit.
        """
        try:
            return (run(),)
        except (RuntimeError, MemoryError) as error:
            if not is_shortage(error):
                raise
            if rows <= 1:
                raise OutOfMemory(
                    "not even one row fits the memory of the device: use a smaller model or "
                    "`dtype`, `device_map` auto, or a shorter task; what was measured is kept"
                ) from error
        gc.collect()  # outside the except: the traceback holds tensors alive
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.tokens = max(1, self.tokens // 2)
        _shares[self._device] = share_of(self._device) / 2
        return None


def share_of(device: torch.device) -> float:
    """Returns the share of a device's free memory that a batch uses."""
    return _shares.get(device, 1 - SAFETY)


def _from_memory(model: GatedModel) -> int:
    """Returns the tokens that fill a GPU's free memory except the safety share; fixed on a CPU.

    It counts keys and values, a few activations of the widest layer, and logits. The estimate is
    coarse, and halving corrects it if it is too large. For a model that is spread over several
    GPUs, the fullest GPU decides, as if it held all keys and values.
    """
    if model.device.type != "cuda":
        return CPU_TOKENS
    devices = {weight.device for weight in model.model.parameters() if weight.device.type == "cuda"}
    free = min(torch.cuda.mem_get_info(device)[0] for device in devices or {model.device})
    config = text_config(model.model.config)
    size = 4 if model.dtype == "float32" else 2
    projections = model.structure.projections
    keys_values = sum(2 * layer.kv_heads * layer.head_dim * size for layer in projections)
    widest = max(int(getattr(config, "intermediate_size", 0) or 0), 4 * int(config.hidden_size))
    logits = 4 * int(config.vocab_size) // 16  # one position in many is kept
    return max(
        1024, int(share_of(model.device) * free / (keys_values + 6 * widest * size + logits))
    )
