"""Gates of components as factors on the inputs or outputs of projections.

A gate on heads multiplies the input of the attention output projection, so it is a vector of
factors of that input; the same holds for neurons at the last projection of a feed-forward block. A
gate on a whole block multiplies the output of its last projection. Gates that an architecture
cannot express as factors are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from broca.errors import UnsupportedModel
from broca.models import ActiveGates, GatedModel, GatedParts, GatePoint, is_transposed

Side = Literal["input", "output"]


@dataclass(frozen=True, eq=False)
class ProjectionFactors:
    """Factors on one side of a projection.

    Attributes:
        path: Dotted name of the projection.
        module: The projection: a linear layer, or transformers' `Conv1D`.
        side: Side that is multiplied: input or output.
        values: The factors in float32, `(width of that side,)`.
    """

    path: str
    module: nn.Module
    side: Side
    values: Tensor


@dataclass(frozen=True, eq=False)
class ExpertFactors:
    """Factors on the outputs of routed experts within one module.

    Attributes:
        point: Gate point of the router's weights.
        values: The factors in float32, `(experts,)`.
    """

    point: GatePoint
    values: Tensor

    @property
    def path(self) -> str:
        """Dotted name of the module."""
        return self.point.path

    @property
    def module(self) -> nn.Module:
        """The module."""
        return self.point.module


Factors = tuple[ProjectionFactors | ExpertFactors, ...]


def factors_of(model: GatedModel, components: Any, scale: float = 0.0) -> Factors:
    """Turns the gates of components into factors on projections and experts.

    Args:
        model: The model.
        components: As for `GatedModel.ablated`.
        scale: Factor of their outputs; 0 ablates. It is rounded to the number format of the
            weights, like gates.

    Returns:
        The factors: at most two for each projection, one for each side, and one for each module of
        experts.

    Raises:
        BrocaError: A name is invalid, or the model has no such components.
        UnsupportedModel: A component cannot be expressed exactly; the message gives the reason.
    """
    parts = model.gated_parts(components, scale)
    rounding = model.model.dtype
    merged: dict[tuple[str, str], ProjectionFactors | ExpertFactors] = {}
    for point in parts.points:
        values = parts.values[0, point.columns].to(rounding).float().cpu()
        if not bool((values != 1).any()):
            continue
        for scaling in _of_point(model, point, parts, values):
            side = scaling.side if isinstance(scaling, ProjectionFactors) else "experts"
            place = (scaling.path, side)
            if place in merged:
                scaling = replace(scaling, values=merged[place].values * scaling.values)
            merged[place] = scaling
    factors = tuple(merged.values())
    _require_unshared(model.model, factors)
    return factors


def _of_point(model: GatedModel, point: GatePoint, parts: GatedParts, values: Tensor) -> Factors:
    """Returns the factors of a gate point.

    Raises:
        UnsupportedModel: The gate is not a factor on weights.
    """
    if point.place == "routing":
        return (ExpertFactors(point, values),)
    name = parts.known.names[point.first_column + int((values != 1).int().argmax())]
    weight = getattr(point.module, "weight", None)
    if point.place == "output" and not (isinstance(weight, Tensor) and weight.dim() == 2):
        return _block_of_experts(model, point, name, values)
    _require_projection(point, name)
    return (_on_projection(point, values),)


@torch.no_grad()
def _block_of_experts(model: GatedModel, point: GatePoint, name: str, values: Tensor) -> Factors:
    """Returns the factors of a feed-forward block of experts: of routed and of shared experts.

    They are compared with the gate on a few tokens.

    Raises:
        UnsupportedModel: The factors do not equal the gate.
    """
    refusal = UnsupportedModel(
        f"{name} cannot be exported exactly: {point.path} adds up several experts, and no weights "
        "of theirs scale their sum; ablate it while the model runs, with `model.ablated`"
    )
    part = next(part for part in model.structure.parts if name == f"L{part.layer}M")
    if part.experts is None:
        raise refusal
    routed = model.gated_parts([f"L{part.layer}E{index}" for index in range(part.expert_count)])
    experts = next(gate for gate in routed.points if gate.path == part.experts.path)
    factors: list[ProjectionFactors | ExpertFactors] = [
        ExpertFactors(experts, values.expand(experts.units).clone())
    ]
    (args, options) = _arguments(model, point.module)
    output = _first(point.module(*args, **options))
    for path, module in point.module.named_modules():
        full = f"{point.path}.{path}"
        shared = isinstance(module, nn.Linear) and module.out_features == output.shape[-1]
        if shared and not full.startswith(f"{experts.path}."):
            factors.append(_on_projection(replace(point, path=full, module=module), values))
    changed: dict[str, Tensor] = {}
    for scaling in factors:
        if isinstance(scaling, ExpertFactors):
            parameters = expert_parameters(model, scaling)
        else:
            parameters = ("weight",) if scaling.side == "input" else ("weight", "bias")
        for parameter in parameters:
            changed[f"{scaling.path}.{parameter}"] = 0.5 * scaling.module.get_parameter(parameter)
    within = {path.removeprefix(f"{point.path}."): tensor for path, tensor in changed.items()}
    halved = _first(torch.func.functional_call(point.module, within, args, options))
    tolerance = (1e-4 if output.dtype == torch.float32 else 5e-2) * float(output.abs().max())
    if float((halved - 0.5 * output).abs().max()) > tolerance:
        raise refusal
    return tuple(factors)


def _first(output: Any) -> Tensor:
    """Returns the output of a block; some blocks return router logits too."""
    tensor: Tensor = output[0] if isinstance(output, tuple) else output
    return tensor


def _on_projection(point: GatePoint, values: Tensor) -> ProjectionFactors:
    """Returns the factors of a gate point; for a block without a bias, on the input."""
    if point.place == "input":
        wide = values.repeat_interleave(point.width)
        return ProjectionFactors(point.path, point.module, "input", wide)
    inputs, outputs = projection_shape(point.module)
    if getattr(point.module, "bias", None) is None:
        return ProjectionFactors(point.path, point.module, "input", values.expand(inputs).clone())
    return ProjectionFactors(point.path, point.module, "output", values.expand(outputs).clone())


def projection_shape(module: nn.Module) -> tuple[int, int]:
    """Returns the widths of a projection's input and output.

    Packed weights of quantized layers have a different shape.
    """
    inputs, outputs = getattr(module, "in_features", None), getattr(module, "out_features", None)
    if isinstance(inputs, int) and isinstance(outputs, int):
        return inputs, outputs
    weight: Tensor = module.weight  # type: ignore[assignment]
    first, second = (int(size) for size in weight.shape)
    return (first, second) if is_transposed(module) else (second, first)


def _require_projection(point: GatePoint, name: str) -> None:
    """Refuses a gate that is not a factor on a projection.

    Raises:
        UnsupportedModel: The message names the component and the reason.
    """
    weight = getattr(point.module, "weight", None)
    if point.place == "update":
        raise UnsupportedModel(
            f"{name} cannot be exported exactly: what a decoder layer adds is the sum of its "
            f"attention and its MLP block; export {name}A+{name}M"
        )
    if isinstance(weight, Tensor) and weight.dim() == 2:
        return
    raise UnsupportedModel(
        f"{name} cannot be exported exactly: a norm ({point.path}) mixes the heads before their "
        "projection, so no matrix has a head's columns alone; ablate it while the model runs, with "
        "`model.ablated`"
    )


def _require_unshared(model: nn.Module, factors: Factors) -> None:
    """Refuses a projection that shares its weights with another part of the model.

    Raises:
        UnsupportedModel: Scaling it would change that part as well.
    """
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for scaling in factors:
        for parameter in scaling.module.parameters(recurse=False):
            others = [
                name for name in names[id(parameter)] if not name.startswith(f"{scaling.path}.")
            ]
            if others:
                raise UnsupportedModel(
                    f"{scaling.path} shares its weights with {others[0]}: an exported model would "
                    "lose both; ablate the component while the model runs, with `model.ablated`"
                )


@torch.no_grad()
def expert_parameters(model: GatedModel, experts: ExpertFactors) -> tuple[str, ...]:
    """Returns the names of the parameters in which the outputs of experts are linear.

    They are the last matrix of every expert and its bias, if any. Candidates are tested on a few
    tokens: factors on them must equal gates.

    Raises:
        UnsupportedModel: There is no such parameter.
    """
    point = replace(experts.point, first_column=0)
    parameters = dict(point.module.named_parameters(recurse=False))
    factors = torch.linspace(0.5, 2.0, point.units, device=model.device)
    args, options = _arguments(model, point.module)
    with ActiveGates((point,), factors[None], every_row=True):
        gated = point.module(*args, **options)
    tolerance = (1e-4 if gated.dtype == torch.float32 else 5e-2) * float(gated.abs().max())
    matrices = [name for name, parameter in parameters.items() if parameter.dim() == 3]
    for name in sorted(matrices, key=lambda name: "down" not in name):
        group = tuple(member for member in (name, f"{name}_bias") if member in parameters)
        scaled = {member: scaled_experts(parameters[member], factors) for member in group}
        output = torch.func.functional_call(point.module, scaled, args, options)
        if float((output - gated).abs().max()) <= tolerance:
            return group
    raise UnsupportedModel(
        f"the experts of {experts.path} cannot be exported exactly: no matrix of theirs scales "
        "their output; ablate them while the model runs, with `model.ablated`"
    )


def _arguments(model: GatedModel, module: nn.Module) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a module when the model reads a few tokens."""
    arguments: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    handle = module.register_forward_pre_hook(
        lambda _module, args, options: arguments.append((args, options)), with_kwargs=True
    )
    tokens = torch.arange(3, 11, device=model.device)[None] % model.vocabulary
    try:
        with model.in_use():
            model.forward(tokens, torch.ones_like(tokens), keep=1)
    finally:
        handle.remove()
    return arguments[0]


def scaled_experts(parameter: Tensor, values: Tensor) -> Tensor:
    """Multiplies a parameter, whose first dimension is the experts, by their factors."""
    wide = values.reshape(-1, *[1] * (parameter.dim() - 1)).to(parameter.device)
    return (parameter.float() * wide).to(parameter.dtype)
