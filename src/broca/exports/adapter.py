"""An ablation as a PEFT adapter of a few kilobytes, which can be switched on and off.

(IA)^3 adapters (Liu et al., 2022) multiply the input of some layers, or the output of others, by a
vector, which expresses factors on projections.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from broca.errors import BadInput, UnsupportedModel
from broca.exports.factors import Factors, ProjectionFactors
from broca.models import is_transposed

WEIGHTS = "adapter_model.safetensors"

NEEDS_PEFT = "an adapter needs PEFT: install it with `pip install 'broca[export]'`"


def require_peft() -> Any:
    """Returns the library PEFT.

    Raises:
        BadInput: PEFT is not installed.
    """
    try:
        import peft
    except ImportError as error:
        raise BadInput(NEEDS_PEFT) from error
    return peft


def write_adapter(
    factors: Factors, folder: Path, *, base: str | None, revision: str | None = None
) -> None:
    """Writes an (IA)^3 adapter with some factors.

    Args:
        factors: The factors from `factors_of`.
        folder: Existing folder for `adapter_config.json` and the vectors.
        base: Source from which PEFT loads the base model; None for a model in memory.
        revision: Revision on the hub.

    Raises:
        BadInput: PEFT is not installed.
        UnsupportedModel: An adapter cannot express a factor.
    """
    peft = require_peft()
    projections = [require_adaptable(scaling) for scaling in factors]
    paths = [projection.path for projection in projections]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise UnsupportedModel(
            f"an adapter multiplies either the input or the output of {twice}, and neurons with "
            "their whole MLP block need both: use `kind` weights"
        )
    config = peft.IA3Config(
        base_model_name_or_path=base,
        revision=revision,
        task_type="CAUSAL_LM",
        inference_mode=True,
        target_modules=sorted(paths),
        feedforward_modules=sorted(
            projection.path for projection in projections if projection.side == "input"
        ),
        fan_in_fan_out=any(is_transposed(projection.module) for projection in projections),
    )
    config.save_pretrained(str(folder))
    vectors = {
        f"base_model.model.{projection.path}.ia3_l": (
            projection.values[None] if projection.side == "input" else projection.values[:, None]
        ).to(torch.float32)
        for projection in projections
    }
    save_file(vectors, folder / WEIGHTS, metadata={"format": "pt"})


def require_adaptable(scaling: Any) -> ProjectionFactors:
    """Returns factors that an adapter can express.

    Raises:
        UnsupportedModel: The factors belong to routed experts.
    """
    if isinstance(scaling, ProjectionFactors):
        return scaling
    raise UnsupportedModel(
        f"an adapter multiplies what enters or leaves a linear layer, and the experts of "
        f"{scaling.path} are held in one tensor: use `kind` weights or patch"
    )
