"""Writes an ablation into the weights, as a checkpoint that does not need broca."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from broca.errors import BadInput, UnsupportedModel
from broca.exports.factors import (
    ExpertFactors,
    ProjectionFactors,
    expert_parameters,
    factors_of,
    scaled_experts,
)
from broca.models import GatedModel, GatePoint, adapted_matrix, is_transposed

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

Means = Mapping[GatePoint, Tensor]
"""Replacements of ablated activations, `(1, width)` for each gate point."""


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
    shifts = {} if means is None else _shifts(model, components, scale, means)
    changed: dict[str, Tensor] = {}
    with torch.no_grad():
        for scaling in factors:
            require_plain_weights(scaling)
            if isinstance(scaling, ExpertFactors):
                for name in expert_parameters(model, scaling):
                    parameter = scaling.module.get_parameter(name)
                    changed[f"{scaling.path}.{name}"] = scaled_experts(parameter, scaling.values)
            else:
                _scale_projection(scaling, changed)
        for path, shift in shifts.items():
            bias = changed.get(f"{path}.bias")
            if bias is None:
                bias = model.model.get_parameter(f"{path}.bias").detach()
            changed[f"{path}.bias"] = (bias.float() + shift.to(bias.device)).to(bias.dtype)
    return changed


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


def _scale_projection(projection: ProjectionFactors, changed: dict[str, Tensor]) -> None:
    """Adds a projection's scaled weight, and its bias if the output is scaled."""
    values = projection.values.to(projection.module.get_parameter("weight").device)
    weight = changed.get(f"{projection.path}.weight", projection.module.get_parameter("weight"))
    along_rows = (projection.side == "input") == is_transposed(projection.module)
    wide = values[:, None] if along_rows else values[None, :]
    changed[f"{projection.path}.weight"] = (weight.detach().float() * wide).to(weight.dtype)
    if projection.side == "output":
        bias = projection.module.get_parameter("bias").detach()
        changed[f"{projection.path}.bias"] = (bias.float() * values).to(bias.dtype)


def _shifts(model: GatedModel, components: Any, scale: float, means: Means) -> dict[str, Tensor]:
    """Returns the addition of mean ablation to the bias of every projection, `(outputs,)`.

    Raises:
        UnsupportedModel: A projection has no bias.
    """
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


def require_plain_weights(scaling: ProjectionFactors | ExpertFactors) -> None:
    """Refuses quantized weights.

    Raises:
        UnsupportedModel: The weights are quantized: scaled columns would be quantized differently.
    """
    for parameter in scaling.module.parameters(recurse=False):
        if type(scaling.module).__name__ in _QUANTIZED or parameter.dtype not in _FLOATS:
            raise UnsupportedModel(
                f"the weights of {scaling.path} are quantized ({type(scaling.module).__name__}, "
                f"{str(parameter.dtype).removeprefix('torch.')}): export the ablation as an "
                "adapter, which leaves them as they are"
            )


_QUANTIZED = ("Linear4bit", "Linear8bitLt", "FP8Linear", "QLinear", "HQQLinear")
"""Quantized layers whose parameters may look like plain tensors."""


@contextmanager
def with_tensors(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """A context in which some parameters of a model are replaced.

    Copies of the model around the same weights are not affected.

    Args:
        model: The transformers model.
        tensors: Values by name of the parameter.

    Raises:
        BadInput: The model has no such parameter, or it has another shape.
    """
    parameters = dict(model.named_parameters())
    for name, tensor in tensors.items():
        if name not in parameters or parameters[name].shape != tensor.shape:
            raise BadInput(
                f"the model has no tensor '{name}' of shape {tuple(tensor.shape)}: give the model "
                "that the patch is of"
            )
    try:
        for name, tensor in tensors.items():
            original = parameters[name]
            _put(model, name, nn.Parameter(tensor.to(original.device, original.dtype), False))
        yield
    finally:
        for name in tensors:
            _put(model, name, parameters[name])


def _put(model: nn.Module, name: str, parameter: nn.Parameter) -> None:
    path, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(path), leaf, parameter)


def write_checkpoint(
    model: nn.Module, tokenizer: Any, folder: Path, *, shard_bytes: int | None = None
) -> None:
    """Writes a model, its tokenizer and its chat template in the format of transformers.

    Args:
        model: The transformers model.
        tokenizer: Its tokenizer; None leaves it out.
        folder: Folder of the checkpoint.
        shard_bytes: Maximum size of a file; None leaves it to transformers.
    """
    sizes = {} if shard_bytes is None else {"max_shard_size": shard_bytes}
    model.save_pretrained(str(folder), **sizes)  # type: ignore[operator]
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))


def shard_size(folder: Path) -> int | None:
    """Returns the size of the largest file of a sharded checkpoint; None if it is not sharded."""
    files = sorted(folder.glob("*.safetensors"))
    if len(files) < 2:
        return None
    return max(file.stat().st_size for file in files)
