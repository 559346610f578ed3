"""Folders of exports are numbered, and removed with the page unless the user keeps them."""

import io
import zipfile

import pytest

from broca.errors import BadInput
from broca.explorer.export_folders import Exports, write_zip


class Unseekable(io.RawIOBase):
    """A stream that is written forwards alone, like a connection."""

    def __init__(self):
        self.content = b""

    def writable(self):
        """Returns True: the stream takes bytes."""
        return True

    def write(self, data):
        """Appends the bytes to the content."""
        self.content += bytes(data)
        return len(data)


def test_folders_are_numbered_and_those_that_stay_empty_go(tmp_path):
    """Folders get the next free number, and the folder of a failed export is removed."""
    (tmp_path / "m-adapter-1").mkdir()
    exports = Exports(tmp_path)
    with exports.folder("m-adapter") as folder:
        (folder / "file").write_text("x")
    assert folder == tmp_path / "m-adapter-2"
    assert exports[exports.add(folder)] == folder
    with pytest.raises(BadInput), exports.folder("m-adapter") as failed:
        raise BadInput("no")
    assert not failed.exists()
    exports.close()
    assert folder.exists()


def test_without_a_folder_they_go_with_the_page():
    """Without a place to keep exports, their folders are removed when the page closes."""
    exports = Exports()
    with exports.folder("m-heads") as folder:
        (folder / "file").write_text("x")
    assert exports.add(folder) == 1
    exports.close()
    assert not folder.exists()


@pytest.mark.parametrize("number", [0, 1, -1])
def test_an_unknown_number_is_refused(tmp_path, number):
    """An unknown number of an export is refused in one line."""
    with pytest.raises(BadInput, match=f"export {number} is not known"):
        Exports(tmp_path)[number]


def test_a_zip_is_written_to_what_cannot_go_back(tmp_path):
    """A zip holds all files under the folder's name and is written without seeking."""
    folder = tmp_path / "m-adapter-1"
    (folder / "in").mkdir(parents=True)
    (folder / "a.json").write_text("{}")
    (folder / "in" / "b.bin").write_bytes(bytes(range(256)))
    connection = Unseekable()
    write_zip(folder, connection)
    with zipfile.ZipFile(io.BytesIO(connection.content)) as archive:
        assert archive.namelist() == ["m-adapter-1/a.json", "m-adapter-1/in/b.bin"]
        assert archive.read("m-adapter-1/in/b.bin") == bytes(range(256))
