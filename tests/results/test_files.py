"""Results are decoded as they were encoded, and files are replaced as a whole."""

import json
import os
from dataclasses import dataclass

import numpy as np
import pytest
from results.samples import make_atlas, make_result

from broca import Localization, read
from broca.errors import BadInput
from broca.results.files import check_out_folder, decode, encode, plain, restored, write_beside


@dataclass(frozen=True)
class Point:
    """A data class with a number, an optional pair and an optional dictionary."""

    x: float
    pair: tuple[int, int] | None = None
    more: dict[str, object] | None = None


def test_the_text_is_the_same_whatever_the_order_of_the_keys():
    """Keys are in the order of the fields, and numbers keep every digit."""
    read = restored({"more": {}, "pair": [1, 2], "x": 1}, Point)
    assert list(plain(read)) == ["x", "pair", "more"]
    assert encode(read) == encode(Point(1.0, (1, 2), {}))
    values = np.random.default_rng(0).normal(size=200).tolist()
    assert restored(json.loads(encode(values)), tuple[float, ...]) == tuple(values)


def test_what_json_lacks_is_null():
    """NaN and infinity are written as null, and NumPy's numbers as plain numbers."""
    data = plain(Point(float("nan"), None, {"a": np.float32(1.5), "b": np.array([1.0, np.inf])}))
    assert data == {"x": None, "pair": None, "more": {"a": 1.5, "b": [1.0, None]}}
    assert json.loads(encode(Point(np.inf)))["x"] is None


@pytest.mark.parametrize(
    ("make", "damage"),
    [
        (make_atlas, lambda data: data.pop("tasks")),
        (make_atlas, lambda data: data["low"][0].pop()),
        (make_result, lambda data: data["ranking"][0].update(other=1)),
    ],
)
def test_a_damaged_result_is_refused(make, damage):
    """A missing, surplus or wrong part is refused in a line that names the kind and its command."""
    result = make()
    data = json.loads(encode(result))
    damage(data)
    for text in (json.dumps(data), "[1]", "", "null", "{}"):
        with pytest.raises(BadInput, match=f"not {result.described()} of broca.*{result.VERB}"):
            decode(type(result), text)


def test_another_schema_is_refused(tmp_path):
    """The message names both schemas; a file that is no text is refused too."""
    text = encode(make_result()).replace('"schema": 2', '"schema": 9')
    with pytest.raises(BadInput, match="it has schema 9, this broca reads schema 2"):
        decode(Localization, text)
    (tmp_path / "result.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="cannot be read"):
        Localization.read(tmp_path)


def test_devices_pipes_and_huge_files_are_no_results(tmp_path):
    """They are refused unread by their path, and skipped beside a result."""
    make_atlas().save(tmp_path)[0].rename(tmp_path / "other.json")
    (tmp_path / "device.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "a pipe.json")
    (tmp_path / "huge.json").touch()
    os.truncate(tmp_path / "huge.json", 2**31)
    for name in ("device", "a pipe", "huge"):
        with pytest.raises(BadInput, match="is not a result of broca"):
            read(tmp_path / f"{name}.json")
    assert read(tmp_path) == make_atlas()


def test_a_file_is_replaced_as_a_whole(tmp_path, monkeypatch):
    """It is UTF-8 with plain line ends, alone in its folder; on a full disk the old one remains."""
    file, other = tmp_path / "result.json", tmp_path.parent / "other.txt"
    for path in (file, other):
        path.write_text("before")
    (tmp_path / "result.json.part").symlink_to(other)  # in a folder of somebody else
    write_beside(file, "é\nsecond\n")
    assert other.read_text() == "before"
    assert file.read_bytes() == "é\nsecond\n".encode()
    with pytest.raises(UnicodeEncodeError):
        write_beside(file, "\udcff")
    assert list(tmp_path.iterdir()) == [file]

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match=r"No space left on device.*free space"):
        write_beside(file, "after")
    assert file.read_text() == "é\nsecond\n"


def test_an_out_folder_is_made_and_left_empty(tmp_path, monkeypatch):
    """Parent folders are created, and `~` is the home folder; a refusal names what was given."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_out_folder("~/a/b") == tmp_path / "a" / "b"
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"`out` '.*file' cannot be written"):
        check_out_folder(tmp_path / "file")
    with pytest.raises(BadInput, match=r"^[^\n]*nowhere[^\n]*cannot be written[^\n]*$"):
        write_beside(tmp_path / "nowhere" / "file", "text")
