"""The scores of single items on disk: append-only, so that a killed run goes on where it was.

A file of records of one size: a key of 16 bytes, the values in float32, a checksum. A record that
was cut off by a kill fails its checksum or its length; it and what follows it are dropped when the
book is opened. The key says everything that decides a score: weights, number format, method,
prompt and answer.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput

_KEY = 16
_CHECK = 4


def key_of(*parts: object) -> bytes:
    """A digest of everything that decides a record's values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=_KEY).digest()


class Scorebook:
    """Vectors by key; in memory alone where there is no file.

    Args:
        path: The file; made if it does not exist. None keeps everything in memory.
        width: Length of every vector.

    Raises:
        BadInput: The file cannot be opened.
    """

    def __init__(self, path: Path | None, width: int) -> None:
        self._width = width
        self._known: dict[bytes, NDArray[np.float32]] = {}
        self._file = None
        if path is None:
            return
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise BadInput(f"'{path}' cannot be written ({error.strerror})") from error
        self._read()

    def _read(self) -> None:
        """Reads whole records and cuts off what a killed run left behind them."""
        assert self._file is not None
        self._file.seek(0)
        good, size = 0, _KEY + 4 * self._width + _CHECK
        while len(record := self._file.read(size)) == size:
            body, check = record[:-_CHECK], int.from_bytes(record[-_CHECK:], "little")
            if zlib.crc32(body) != check:
                break
            self._known[body[:_KEY]] = np.frombuffer(body[_KEY:], dtype="<f4")
            good += size
        self._file.truncate(good)
        self._file.seek(0, 2)

    def __enter__(self) -> Scorebook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, key: bytes) -> NDArray[np.float32] | None:
        """The vector under a key, or None."""
        return self._known.get(key)

    def put(self, key: bytes, values: NDArray[np.float32]) -> None:
        """Adds a vector `(width,)`, to the file in one write."""
        assert values.shape == (self._width,)
        self._known[key] = values
        if self._file is not None:
            body = key + np.ascontiguousarray(values, dtype="<f4").tobytes()
            self._file.write(body + zlib.crc32(body).to_bytes(_CHECK, "little"))
            self._file.flush()
