"""The token budget of a batch, derived from the free memory and halved when memory runs out."""

import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

from broca.errors import OutOfMemory, is_shortage
from broca.models import GatedModel
from broca.models.structure import text_config

CPU_TOKENS = 4096
"""Tokens of a batch on a CPU: small batches fit into its caches."""

_CPU_CACHED_TOKEN = 1 / 16
"""Cost of a cached token in a batch on a CPU, in read tokens: memory is not scarce there."""

SAFETY = 0.2
"""Share of a GPU's free memory that a batch initially leaves free."""

RowT = TypeVar("RowT")


class Budget:
    """The token budget of an engine.

    The initial budget uses the estimated free memory except a share of `SAFETY`. If memory runs
    out, the budget is halved.

    Args:
        model: The model, for its size and device.
        tokens: The initial budget; None derives it from the free memory.
    """

    def __init__(self, model: GatedModel, tokens: int | None) -> None:
        self._model = model
        self.tokens = tokens or _from_memory(model)
        """Current maximum number of tokens of a batch."""
        self.recompute = False
        """Whether gradients compute activations again, as a single row with them did not fit."""
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

    def batch(
        self, rows: Sequence[RowT], length: Callable[[RowT], int], *, cost: int = 1, cached: int = 0
    ) -> Sequence[RowT]:
        """Returns the first rows that fit a batch; at least one.

        Args:
            rows: The rows, longest first.
            length: Returns the number of new tokens of a row.
            cost: Cost of a new token in the budget.
            cached: Number of past tokens of each row.
        """
        batch = rows[: self.rows(cost * length(rows[0]), cached=cached)]
        return batch[: self.padded_together([length(row) for row in batch])]

    @contextmanager
    def attempt(self, rows: int, *, recomputable: bool = False) -> Iterator[None]:
        """A context for `rows` rows that may run out of memory.

        If they do, the rest of the context is left out, memory is freed and the budget halved, or
        `recompute` set; the caller runs the same rows again.

        Args:
            rows: Number of rows.
            recomputable: Whether a single row may be run again with `recompute`.

        Raises:
            OutOfMemory: A single row does not fit.
        """
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_shortage(error):
                raise
            if rows <= 1 and (self.recompute or not recomputable):
                raise OutOfMemory(
                    "not even one row fits the memory of the device: use a smaller model or "
                    "`dtype`, `device_map` auto, or a shorter task; what was measured is kept"
                ) from error
            traceback.clear_frames(error.__traceback__)  # they hold tensors
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if rows <= 1:
                self.recompute = True
            else:
                self.tokens = max(1, self.tokens // 2)


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
    of_layers = getattr(config, "intermediate_size", 0) or 0  # of some models a list
    widest = max(int(torch.tensor(of_layers).max()), 4 * int(config.hidden_size))
    logits = 4 * int(config.vocab_size) // 16  # one position in many is kept
    return max(1024, int((1 - SAFETY) * free / (keys_values + 6 * widest * size + logits)))
