"""Digests by content, not by names, paths or positions, which identify rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

KEYS = 1
"""Version of the meaning of responses; incremented when answers of the engine change."""

_BYTES = 16


@dataclass(frozen=True)
class Condition:
    """Everything that determines a response besides its mask and its item.

    Attributes:
        weights: Digest of the model: its weights, its settings and its adapters.
        tokenizer: Digest of the tokenizer.
        dtype: Number format of the model.
        ablation: Kind of ablation, such as `zero` or `mean`.
        scale: Gate of an ablated component.
        seed: Seed of the ablation; 0 if it draws nothing.
        donors: Digest of the items whose activations replace ablated ones; empty for `zero`.
        response: `accuracy`, `margin` or `probability`; for vectors, their kind.
        gradients: Whether the row has a gradient. Such a row is computed differently, and is
            another row.
    """

    weights: str
    tokenizer: str
    dtype: str
    ablation: str
    scale: float
    seed: int
    donors: str
    response: str
    gradients: bool = False

    def digest(self) -> bytes:
        """Digest of the condition, 16 bytes."""
        text = json.dumps([KEYS, asdict(self)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=_BYTES).digest()


@dataclass(frozen=True)
class ItemRecord:
    """An item in the journal.

    Attributes:
        digest: Digest of its content, 16 bytes.
        task: Name of the task, for the reader.
        number: Position among the task's documents, for the reader.
        prompt: Text of the prompt, for the reader.
        target: The right answer, for the reader.
    """

    digest: bytes
    task: str
    number: int
    prompt: str = ""
    target: str = ""


def components_digest(names: Sequence[str]) -> bytes:
    """Returns the digest of the columns of a mask, 16 bytes."""
    return hashlib.blake2b("\n".join(names).encode(), digest_size=_BYTES).digest()


def mask_digests(masks: NDArray[np.bool_], components: bytes) -> list[bytes]:
    """Returns the digest of every mask `(masks, components)`, 16 bytes each."""
    return [
        hashlib.blake2b(components + packed.tobytes(), digest_size=_BYTES).digest()
        for packed in np.packbits(masks, axis=1)
    ]
