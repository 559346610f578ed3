"""A patch holds changed tensors and the fingerprint of their base."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from broca.errors import BadInput
from broca.exports.patch import FILE, Patch, read_patch, write_patch

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.bias": torch.ones(2).bfloat16()}


def test_what_is_written_is_read_again(tmp_path):
    """A patch is read back from its folder or file, and is a plain safetensors file."""
    write_patch(Patch("abc", "bfloat16", TENSORS), tmp_path)
    for place in (tmp_path, tmp_path / FILE):
        patch = read_patch(place)
        assert (patch.fingerprint, patch.dtype) == ("abc", "bfloat16")
        assert all(torch.equal(patch.tensors[name], TENSORS[name]) for name in TENSORS)
    assert set(load_file(tmp_path / FILE)) == set(TENSORS)


def test_anything_else_is_refused(tmp_path):
    """An empty folder, another kind of file and tensors without a fingerprint are refused."""
    with pytest.raises(BadInput, match=f"holds no {FILE}"):
        read_patch(tmp_path)
    (tmp_path / FILE).write_text("text")
    with pytest.raises(BadInput, match="is not a patch of broca"):
        read_patch(tmp_path)
    save_file(TENSORS, tmp_path / FILE)
    with pytest.raises(BadInput, match=r"is not a patch of broca .*base_fingerprint"):
        read_patch(tmp_path)
