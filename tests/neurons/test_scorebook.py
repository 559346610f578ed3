"""Item scores on disk: what was written is read, what was cut off is not."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons.scorebook import Scorebook, key_of

KEYS = [key_of("item", number) for number in range(3)]
VALUES = [np.arange(4, dtype=np.float32) + number for number in range(3)]


@pytest.fixture
def path(tmp_path):
    """A book of three records."""
    file = tmp_path / "scores.bin"
    with Scorebook(file, 4) as book:
        for key, values in zip(KEYS, VALUES, strict=True):
            book.put(key, values)
    return file


def test_records_come_back(path):
    """Bit for bit, by key; unknown keys are None."""
    with Scorebook(path, 4) as book:
        for key, values in zip(KEYS, VALUES, strict=True):
            assert np.array_equal(book.get(key), values)
        assert book.get(key_of("other")) is None


@pytest.mark.parametrize("cut", [1, 20, 35])
def test_a_record_cut_off_by_a_kill_is_dropped(path, cut):
    """The whole ones before it stay, and new records can follow."""
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    with Scorebook(path, 4) as book:
        assert book.get(KEYS[1]) is not None
        assert book.get(KEYS[2]) is None
        book.put(KEYS[2], VALUES[2])
    assert path.read_bytes() == data


def test_a_damaged_record_and_what_follows_is_dropped(path):
    """A flipped byte fails the checksum."""
    data = bytearray(path.read_bytes())
    data[len(data) // 3 + 18] ^= 1
    path.write_bytes(bytes(data))
    with Scorebook(path, 4) as book:
        assert book.get(KEYS[0]) is not None
        assert book.get(KEYS[1]) is None
        assert book.get(KEYS[2]) is None


def test_keys_tell_everything_apart():
    """Different parts, different keys; equal parts, equal keys."""
    assert key_of("a", (1, 2)) == key_of("a", (1, 2))
    assert len({key_of("a", (1, 2)), key_of("a", (1, 3)), key_of("b", (1, 2))}) == 3


def test_unwritable_book_is_refused(tmp_path):
    """A folder in its place is one line of error."""
    with pytest.raises(BadInput, match="cannot be written"):
        Scorebook(tmp_path, 4)
