"""Digests by content, never by names, paths or positions: what makes two rows the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

KEYS = 1
"""Version of what a response means; raised when the engine comes to answer differently."""

_BYTES = 16


@dataclass(frozen=True)
class Condition:
    """All that a response depends on besides its mask and its item.

    Attributes:
        weights: Fingerprint of the model's weights.
        tokenizer: Digest of its tokenizer.
        dtype: Number format that it runs in.
        ablation: `zero`, `mean` or `resample`.
        scale: Gate of an ablated component.
        seed: Seed of the ablation; 0 where it draws nothing.
        donors: Digest of the items whose activations stand in for ablated ones; empty for `zero`.
        response: `accuracy`, `margin` or `probability`; for vectors, what they are.
        gradients: Whether the row comes with its gradient. Such a row is computed in another way,
            so it is another row.
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
        """Digest of all of it, 16 bytes."""
        text = json.dumps([KEYS, asdict(self)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=_BYTES).digest()


@dataclass(frozen=True)
class ItemRecord:
    """An item as the journal knows it.

    Attributes:
        digest: Of its content, 16 bytes.
        task: The task's name, for people.
        number: Its position among the task's documents, for people.
        prompt: Its text, for people.
        target: The right answer, for people.
    """

    digest: bytes
    task: str
    number: int
    prompt: str = ""
    target: str = ""


def components_digest(names: Sequence[str]) -> bytes:
    """Digest of the columns of a mask, 16 bytes."""
    return hashlib.blake2b("\n".join(names).encode(), digest_size=_BYTES).digest()


def mask_digests(masks: NDArray[np.bool_], components: bytes) -> list[bytes]:
    """Digest of every mask `(masks, components)` over components of that digest, 16 bytes each."""
    return [
        hashlib.blake2b(components + packed.tobytes(), digest_size=_BYTES).digest()
        for packed in np.packbits(masks, axis=1)
    ]
