"""Vectors are compressed if that makes them smaller, and read back bit for bit."""

import numpy as np
import pytest

from broca.journal.blobs import packed, unpacked, vector_seal


@pytest.mark.parametrize("length", [0, 1, 48, 3000])
@pytest.mark.parametrize("zeros", [0.0, 0.95])
def test_vectors_come_back_bit_for_bit(length, zeros):
    """Dense and sparse vectors come back bit for bit, infinities and NaN included."""
    rng = np.random.default_rng(length)
    vector = np.where(rng.random(length) < zeros, 0, rng.normal(size=length)).astype(np.float32)
    vector[:3] = [np.nan, -np.inf, -0.0][: min(3, length)]
    blob = packed(vector)
    assert len(blob) <= 4 * length
    back = unpacked(blob, length)
    assert back.tobytes() == vector.tobytes()
    assert back.flags.writeable


def test_a_plain_blob_is_a_vector():
    """Uncompressed blobs, as in version 1, are read; a vector that does not shrink stays so."""
    vector = np.random.default_rng(0).normal(size=48).astype(np.float32)
    assert packed(vector) == vector.astype("<f4").tobytes()
    sparse = np.zeros(1000, dtype=np.float32)
    assert len(packed(sparse)) < 100
    np.testing.assert_array_equal(unpacked(sparse.tobytes(), 1000), sparse)


@pytest.mark.parametrize("blob", [b"", b"\0" * 7, packed(np.zeros(99, dtype=np.float32))])
def test_a_blob_of_another_length_is_refused(blob):
    """An empty blob, one that is no zlib stream and one of another length are refused."""
    with pytest.raises(ValueError, match=r"."):
        unpacked(blob, 100)


def test_the_seal_covers_everything():
    """A change of condition, observation, length or blob changes the seal."""
    parts = [(1, 2), (b"a" * 16, b"b" * 16), (3, 4), (b"\0" * 12, b"\0" * 11 + b"\1")]
    first = [pair[0] for pair in parts]
    changed = [[*first[:n], pair[1], *first[n + 1 :]] for n, pair in enumerate(parts)]
    assert len({vector_seal(*values) for values in [first, *changed]}) == 5
