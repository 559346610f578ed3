"""What results say of where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import version

from broca.engine import Ablation
from broca.models import GatedModel
from broca.results.localization import ModelInfo
from broca.results.verification import Crossing, Verification
from broca.verification import Examination, Scope


def version_of_broca() -> str:
    """The version that results name."""
    return version("broca")


def model_info(model: GatedModel) -> ModelInfo:
    """What results say of a model."""
    return ModelInfo(
        name=model.name,
        fingerprint=model.fingerprint,
        architecture=model.architecture,
        layers=model.structure.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        dtype=model.dtype,
    )


def evidence_of(
    model: GatedModel,
    task: str,
    heads: Sequence[str],
    how: Ablation,
    scope: Scope,
    examined: Examination,
    rows: int,
    *,
    crossings: Sequence[Crossing] = (),
    notes: Sequence[str] = (),
) -> Verification:
    """Puts what was measured and what it was measured on into one record."""
    return Verification(
        model=model.name,
        fingerprint=model.fingerprint,
        task=task,
        heads=tuple(heads),
        ablation=how.kind,
        scale=how.scale,
        seed=how.seed,
        level=scope.level,
        **{one.name: getattr(examined, one.name) for one in fields(examined)},
        crossings=tuple(crossings),
        rows=rows,
        notes=tuple(notes),
        broca=version_of_broca(),
    )
