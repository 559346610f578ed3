"""Files are replaced as a whole, and out folders are checked to be writable."""

import os

import pytest

from broca.errors import BadInput
from broca.results.files import check_out_folder, write_beside


def test_text_replaces_what_was_there(tmp_path):
    """The file is UTF-8 with plain line ends, and no temporary file remains."""
    file = tmp_path / "result.json"
    file.write_text("before")
    write_beside(file, "é\nsecond\n")
    assert file.read_bytes() == "é\nsecond\n".encode()
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    """If the disk is full, the old file remains and the message says so."""
    file = tmp_path / "result.json"
    file.write_text("before")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match=r"No space left on device.*free space"):
        write_beside(file, "after")
    assert file.read_text() == "before"


def test_a_folder_that_is_missing_is_refused(tmp_path):
    """The message is a single line."""
    with pytest.raises(BadInput, match="cannot be written") as error:
        write_beside(tmp_path / "nowhere" / "file", "text")
    assert "\n" not in str(error.value)


def test_an_out_folder_is_made_and_left_empty(tmp_path, monkeypatch):
    """Parent folders are created, and a tilde is expanded to the home folder."""
    assert check_out_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list((tmp_path / "a" / "b").iterdir()) == []
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_out_folder("~/c") == tmp_path / "c"
    assert (tmp_path / "c").is_dir()


def test_a_place_that_is_a_file_is_refused(tmp_path):
    """The message names the parameter and the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"`out` '.*file' cannot be written"):
        check_out_folder(tmp_path / "file")
