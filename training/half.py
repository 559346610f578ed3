"""Stores the weights of trained models in float16; they are loaded to float32.

    python training/half.py src/broca/reference_models/reference ...

Run it before `card.py`, which then measures the weights that are shipped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def store_half(folder: Path) -> None:
    """Rounds the float32 weights of a folder to float16; `config.json` still says float32.

    Raises:
        ValueError: A weight is too large for float16.
    """
    file = folder / "model.safetensors"
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    tensors = {name: tensor.half().contiguous() for name, tensor in load_file(file).items()}
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} of {folder} has weights beyond float16")
    save_file(tensors, file, metadata=metadata)


if __name__ == "__main__":
    for place in sys.argv[1:]:
        store_half(Path(place))
