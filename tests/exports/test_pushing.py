"""Exports are uploaded to a local stand-in for the hub."""

import huggingface_hub
import pytest
from exports.hub import fake_hub

from broca.errors import BadInput
from broca.exports.pushing import upload


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two files, and a token."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    (tmp_path / "README.md").write_text("# card\n")
    (tmp_path / "data.json").write_text("{}")
    return tmp_path


def test_every_file_is_in_the_repository(folder):
    """Every file is uploaded; the repository is made private if wanted, and reused."""
    with fake_hub() as hub:
        for _ in range(2):
            address = upload(folder, "me/without", private=True, endpoint=hub.address)
        assert address == f"{hub.address}/me/without"
        assert hub.private == {"me/without": True}
        assert hub.repositories["me/without"] == {
            "README.md": b"# card\n", "data.json": b"{}",
        }  # fmt: skip


def test_a_refusal_is_one_line(folder):
    """Missing rights, a bad name and an unreachable hub are refused in one line."""
    with fake_hub(refuses=True) as hub, pytest.raises(BadInput) as caught:
        upload(folder, "me/without", endpoint=hub.address)
    assert "could not be written (" in str(caught.value)
    assert f"the export in '{folder}' is whole" in str(caught.value)
    assert "\n" not in str(caught.value)
    for name, endpoint in (("me/with out", hub.address), ("me/without", "http://127.0.0.1:1")):
        with pytest.raises(BadInput, match=r"`push`: .* could not be written"):
            upload(folder, name, endpoint=endpoint)
