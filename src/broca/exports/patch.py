"""A patch: only the changed tensors, with the fingerprint of their model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from broca.errors import BadInput

FILE = "patch.safetensors"


@dataclass(frozen=True, eq=False)
class Patch:
    """Changed tensors of a model.

    Attributes:
        fingerprint: Digest of the unchanged weights.
        dtype: Number format of those weights.
        tensors: New values by name of the parameter.
    """

    fingerprint: str
    dtype: str
    tensors: Mapping[str, Tensor]


def write_patch(patch: Patch, folder: Path) -> None:
    """Writes `patch.safetensors`, with fingerprint and number format in its metadata."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in patch.tensors.items()}
    metadata = {"format": "pt", "base_fingerprint": patch.fingerprint, "dtype": patch.dtype}
    save_file(tensors, folder / FILE, metadata=metadata)


def read_patch(path: Path) -> Patch:
    """Reads a patch from its file or its folder.

    Raises:
        BadInput: The file does not exist, or is not a patch of broca.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise BadInput(
            f"'{path}' holds no {FILE}: give the folder that `broca export --kind patch` wrote"
        )
    try:
        with safe_open(file, framework="pt") as content:
            metadata = content.metadata() or {}
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        return Patch(metadata["base_fingerprint"], metadata["dtype"], tensors)
    except (OSError, SafetensorError, KeyError) as error:
        raise BadInput(
            f"'{file}' is not a patch of broca ({type(error).__name__}: {error}): give the folder "
            "that `broca export --kind patch` wrote"
        ) from error
