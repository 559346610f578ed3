"""What identifies a row: its condition and its item, by content instead of names or paths."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

KEYS = 1
"""Version of the meaning of responses; incremented when answers of the engine change."""

Ids = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Condition:
    """Everything that determines a response besides its mask and its item.

    Attributes:
        weights: Digest of the model: its weights, its settings and its adapters.
        tokenizer: Digest of the tokenizer with its chat template.
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

    def text(self) -> str:
        """The text that stands for the condition in a journal."""
        return json.dumps({"keys": KEYS, **asdict(self)})

    @classmethod
    def read(cls, text: str) -> Self:
        """Returns the condition of a text."""
        return msgspec.json.decode(text, type=cls)


class ItemRecord(NamedTuple):
    """An item in the journal.

    Attributes:
        digest: Digest of its content, which alone identifies it; the others are for the reader.
        task: Name of the task.
        number: Position among the task's documents.
        prompt: Text of the prompt.
        target: The right answer.
    """

    digest: bytes
    task: str
    number: int
    prompt: str = ""
    target: str = ""


def restored(values: Any, kind: type[T]) -> T:
    """Returns a data class from plain values; its arrays have the types of their annotations."""
    return msgspec.convert(
        values,
        kind,
        dec_hook=lambda array, entries: np.array(entries, array.__args__[1].__args__[0]),
    )


def row_keys(masks: Ids, items: Ids) -> Ids:
    """Returns the key of every row from the ids of its mask and its item, `(rows,)`."""
    return masks << 32 | items


def vector_keys(kind: str, contents: Sequence[str]) -> Ids:
    """Returns the keys of vectors of a kind, each told from the others by its content."""
    digests = [
        hashlib.blake2b(f"{kind}\n{content}".encode(), digest_size=8).digest()
        for content in contents
    ]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def components_digest(names: Sequence[str]) -> bytes:
    """Returns the digest of the columns of a mask, 16 bytes."""
    return hashlib.blake2b("\n".join(names).encode(), digest_size=16).digest()
