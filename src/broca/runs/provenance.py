"""The parts of results that describe the model."""

from __future__ import annotations

from broca.models import GatedModel
from broca.results.base import ModelInfo


def model_info(model: GatedModel) -> ModelInfo:
    """Returns the description of a model in results."""
    return ModelInfo(
        name=model.name, fingerprint=model.fingerprint, architecture=model.architecture,
        layers=model.structure.layers, heads=model.heads, kv_heads=model.kv_heads,
        dtype=model.dtype, revision=model.revision, remote_code=model.remote_code,
        adapter=model.adapter,
    )  # fmt: skip
