"""Writes an ablation into the weights, as a checkpoint that does not need broca."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from broca.errors import UnsupportedModel
from broca.exports.factors import factors_of, scaled_tensors
from broca.models import GatedModel, GatePoint, adapted_matrix, is_transposed

Means = Mapping[GatePoint, Tensor]
"""Replacements of ablated activations, `(1, width)` for each gate point."""

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

_QUANTIZED = ("Linear4bit", "Linear8bitLt", "FP8Linear", "QLinear", "HQQLinear")
"""Quantized layers whose parameters may look like plain tensors."""


@torch.no_grad()
def changed_tensors(
    model: GatedModel, components: Any, scale: float = 0.0, *, means: Means | None = None
) -> dict[str, Tensor]:
    """Returns the tensors that change when components are scaled in the weights.

    Args:
        model: The model, which is not changed.
        components: As for `GatedModel.ablated`.
        scale: Factor of their outputs; 0 ablates.
        means: For mean ablation, the donors of `donor_activations`: the share `1 - scale` of an
            output is its mean, which is added to the projection's bias.

    Returns:
        New values by name of the parameter, on the parameter's device, in its number format.

    Raises:
        BrocaError: A name is invalid, or the model has no such components.
        UnsupportedModel: The ablation cannot be written into the weights; the message gives the
            reason.
    """
    factors = factors_of(model, components, scale)
    for one in factors:
        # scaled columns of quantized weights would be quantized differently
        for parameter in one.module.parameters(recurse=False):
            if type(one.module).__name__ in _QUANTIZED or parameter.dtype not in _FLOATS:
                raise UnsupportedModel(
                    f"the weights of {one.path} are quantized ({type(one.module).__name__}, "
                    f"{str(parameter.dtype).removeprefix('torch.')}): export the ablation as an "
                    "adapter, which leaves them as they are"
                )
    changed = scaled_tensors(model, factors)
    for path, shift in _shifts(model, components, scale, means or {}).items():
        name = f"{path}.bias"
        bias = changed.get(name, model.model.get_parameter(name).detach())
        changed[name] = (bias.float() + shift.to(bias.device)).to(bias.dtype)
    return changed


def _shifts(model: GatedModel, components: Any, scale: float, means: Means) -> dict[str, Tensor]:
    """Returns the addition of mean ablation to the bias of every projection, `(outputs,)`.

    Raises:
        UnsupportedModel: A projection has no bias.
    """
    if not means:
        return {}
    parts = model.gated_parts(components, scale)
    means_by_place = {(point.path, point.place, point.units): mean for point, mean in means.items()}
    shifts: dict[str, Tensor] = {}
    for point in parts.points:
        gates = parts.values[0, point.columns].float().cpu()
        if not bool((gates != 1).any()):
            continue
        if getattr(point.module, "bias", None) is None:
            name = parts.known.names[point.first_column + int((gates != 1).int().argmax())]
            raise UnsupportedModel(
                f"what stands in for {name} cannot be exported: it would go into the bias of "
                f"{point.path}, which has none; use zero ablation, or ablate it while the model "
                "runs"
            )
        mean = means_by_place[point.path, point.place, point.units][0].float().cpu()
        if point.place == "output":
            shift = (1 - gates) * mean
        else:
            weight = point.module.get_parameter("weight").detach().float().cpu()
            replaced = (1 - gates).repeat_interleave(point.width) * mean
            shift = replaced @ (weight if is_transposed(point.module) else weight.T)
        shifts[point.path] = shifts.get(point.path, torch.zeros_like(shift)) + shift
    return shifts


@torch.no_grad()
def without_adapters(model: GatedModel) -> GatedModel:
    """Returns the model with its active adapters merged into a copy; itself if it has none."""
    if not any(adapted_matrix(module) is not None for module in model.model.modules()):
        return model
    plain = copy.deepcopy(model.model)
    replaced: dict[str, nn.Module] = {}
    for path, module in list(plain.named_modules()):
        if any(path.startswith(f"{outer}.") for outer in replaced):
            continue
        if hasattr(module, "unload_and_optionally_merge_module"):
            active = not module.disable_adapters
            if active or not hasattr(module, "modules_to_save"):
                replaced[path] = module.unload_and_optionally_merge_module(
                    merge=active, safe_merge=False, adapter_names=None
                )
            else:
                replaced[path] = module.original_module
        elif adapted_matrix(module) is not None:
            layers = [module]
            while (inner := adapted_matrix(layers[0])) is not None:
                layers.insert(0, inner)
            for layer in layers[1:]:  # the innermost first
                if not layer.disable_adapters:
                    layer.merge()
            replaced[path] = layers[0]
    for path, module in replaced.items():
        plain.set_submodule(path, module)
    plain._hf_peft_config_loaded = False  # else transformers would save an adapter
    return GatedModel.wrap(plain, model.tokenizer, name=model.name, components=model.kinds)


def with_tensors(model: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Returns a copy of a model with some other parameters, around the same other weights."""
    shared = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
    for name, tensor in tensors.items():
        shared[id(model.get_parameter(name))] = nn.Parameter(tensor, requires_grad=False)
    return copy.deepcopy(model, shared)


def write_weights(
    model: GatedModel, tensors: Mapping[str, Tensor], folder: Path, *, base: Path | None = None
) -> None:
    """Writes a checkpoint with changed tensors, its tokenizer and its chat template.

    Args:
        model: The model, which is not changed.
        tensors: The tensors from `changed_tensors`.
        folder: Folder of the checkpoint.
        base: A folder with a checkpoint, whose shards are no smaller than those that are written.
    """
    shards = [] if base is None else [file.stat().st_size for file in base.glob("*.safetensors")]
    sizes = {"max_shard_size": max(shards)} if len(shards) > 1 else {}
    with_tensors(model.model, tensors).save_pretrained(str(folder), **sizes)  # type: ignore[operator]
    if model.tokenizer is not None:
        model.tokenizer.save_pretrained(str(folder))
