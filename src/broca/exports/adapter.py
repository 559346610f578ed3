"""An ablation as a PEFT adapter of a few kilobytes, which can be switched on and off.

(IA)^3 adapters (Liu et al., 2022) multiply the input of some layers, or the output of others, by a
vector, which expresses factors on projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from broca.errors import BadInput, UnsupportedModel
from broca.exports.factors import Factors
from broca.models import is_transposed

WEIGHTS = "adapter_model.safetensors"


def require_peft() -> Any:
    """Returns the library PEFT.

    Raises:
        BadInput: PEFT is not installed.
    """
    try:
        import peft
    except ImportError as error:
        raise BadInput(
            "an adapter needs PEFT: install it with `pip install 'broca[export]'`"
        ) from error
    return peft


def write_adapter(
    factors: Sequence[Factors], folder: Path, *, base: str | None, revision: str | None = None
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
    paths = [one.path for one in factors]
    for one in factors:
        if one.side == "experts":
            raise UnsupportedModel(
                f"an adapter multiplies what enters or leaves a linear layer, and the experts of "
                f"{one.path} are held in one tensor: use `kind` weights"
            )
        if paths.count(one.path) > 1:
            raise UnsupportedModel(
                f"an adapter multiplies either the input or the output of {one.path}, and neurons "
                "with their whole MLP block need both: use `kind` weights"
            )
    config = require_peft().IA3Config(
        base_model_name_or_path=base,
        revision=revision,
        task_type="CAUSAL_LM",
        inference_mode=True,
        target_modules=sorted(paths),
        feedforward_modules=sorted(one.path for one in factors if one.side == "input"),
        fan_in_fan_out=any(is_transposed(one.module) for one in factors),
    )
    config.save_pretrained(str(folder))
    vectors = {
        f"base_model.model.{one.path}.ia3_l": (
            one.values[None] if one.side == "input" else one.values[:, None]
        ).to(torch.float32)
        for one in factors
    }
    save_file(vectors, folder / WEIGHTS, metadata={"format": "pt"})
