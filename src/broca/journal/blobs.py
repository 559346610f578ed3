"""The encoding of vectors in the journal, and its checksums."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

LEVEL = 1
"""Compression level of zlib. Dense vectors of a thousand numbers shrink by 3 to 7 per cent at every
level. Vectors with 90 per cent zeros shrink to 16 per cent at level 1, and to 14 at level 6, which
takes three times as long (`python benchmarks/journal.py`)."""

_ROW = struct.Struct("<qqqd")
_VECTOR = struct.Struct("<qq")


def packed(vector: NDArray[np.float32]) -> bytes:
    """Returns a vector as little-endian float32, compressed by zlib if that is shorter."""
    plain = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    compressed = zlib.compress(plain, LEVEL)
    return compressed if len(compressed) < len(plain) else plain


def unpacked(blob: bytes, length: int) -> NDArray[np.float32]:
    """Decodes the vector `(length,)` of `packed`; a blob of full length is not compressed.

    Raises:
        ValueError: The blob is not a vector of this length.
    """
    size = 4 * length
    if len(blob) != size:
        try:
            blob = zlib.decompress(blob)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if len(blob) != size:
            raise ValueError(f"{len(blob)} bytes instead of {size}")
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def row_seal(condition: int, mask: int, item: int, response: float) -> int:
    """Returns the CRC-32 of a row."""
    return zlib.crc32(_ROW.pack(condition, mask, item, response))


def blob_seal(condition: int, mask: int, item: int, blob: bytes) -> int:
    """Returns the CRC-32 of a row's stored gradient, or of its output in UTF-8."""
    return zlib.crc32(blob, row_seal(condition, mask, item, 0.0))


def vector_seal(condition: int, digest: bytes, length: int, blob: bytes) -> int:
    """Returns the CRC-32 of an observation's stored vector."""
    return zlib.crc32(blob, zlib.crc32(digest, zlib.crc32(_VECTOR.pack(condition, length))))
