"""Finished parts of a stress test, one JSON line each, so that a killed test goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from broca.models import GatedModel
from broca.results.base import version_of_broca
from broca.results.codec import encode, plain, restored
from broca.runs.lines import LineFile
from broca.stress_tests.families import Family

NAME = "stress-parts.jsonl"


@dataclass(frozen=True)
class Part:
    """One finished part of one test.

    Attributes:
        asked: Digest of everything that the test was asked.
        name: Which part.
        value: What it found, as parsed JSON.
    """

    asked: str
    name: str
    value: Any

    @property
    def key(self) -> tuple[str, str]:
        """Two parts of one key are the same work."""
        return self.asked, self.name

    def to_line(self) -> str:
        """As one line of JSON."""
        return encode(self, indent=None)

    @classmethod
    def from_line(cls, line: str) -> Part:
        """Reads what `to_line` wrote.

        Raises:
            ValueError: It is no such line.
        """
        return restored(json.loads(line), cls)


class Parts:
    """What is finished of one test.

    Args:
        asked: Digest of everything that the test was asked.
        path: The file that keeps parts; None keeps nothing.

    Raises:
        BadInput: The file holds something else.
    """

    def __init__(self, asked: str, path: Path | None) -> None:
        self._asked = asked
        self._file = None if path is None else LineFile[Part, tuple[str, str]](path, Part.from_line)

    def get(self, name: str, kind: Any, make: Callable[[], Any]) -> Any:
        """A part, measured only where it is not kept yet.

        Args:
            name: Which part.
            kind: Its type, made of frozen dataclasses, tuples and plain values.
            make: Measures it.

        Raises:
            BadInput: The file cannot be written.
        """
        if self._file is None:
            return make()
        for one in self._file.pieces:
            if one.key == (self._asked, name):
                return restored(one.value, kind)
        found = make()
        self._file.append(Part(self._asked, name, plain(found)))
        return found


def digest(
    model: GatedModel,
    columns: Sequence[int],
    families: Sequence[Family],
    *,
    count: int,
    sets: int,
    seed: int,
) -> str:
    """Digest of what a test is asked: weights, their type, heads, prompts, numbers and version."""
    content = [
        version_of_broca(), model.fingerprint, model.dtype, list(columns),
        [asdict(one) for one in families], count, sets, seed,
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
