"""Gates of components as factors on the inputs or outputs of projections.

A gate on heads multiplies the input of the attention output projection, so it is a vector of
factors of that input; the same holds for neurons at the last projection of a feed-forward block. A
gate on a whole block multiplies the output of its last projection. Gates that an architecture
cannot express as factors are refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from broca.errors import UnsupportedModel
from broca.models import ActiveGates, GatedModel, GatePoint
from broca.models.structure import is_transposed, widths


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors on one side of a projection, or on the outputs of the experts in a module.

    Attributes:
        point: Gate point of the projection (a linear layer, or transformers' `Conv1D`), or of the
            router's weights.
        side: What is multiplied.
        values: The factors in float32, `(width of that side,)` or `(experts,)`.
    """

    point: GatePoint
    side: Literal["input", "output", "experts"]
    values: Tensor

    @property
    def path(self) -> str:
        """Dotted name of the module."""
        return self.point.path

    @property
    def module(self) -> nn.Module:
        """The projection, or the module of the experts."""
        return self.point.module


def factors_of(model: GatedModel, components: Any, scale: float = 0.0) -> tuple[Factors, ...]:
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
    merged: dict[tuple[str, str], Factors] = {}
    for point, gates, name in scaled_points(model, components, scale):
        for factors in _of_point(model, point, gates, name):
            place = (factors.path, factors.side)
            if place in merged:
                factors = replace(factors, values=merged[place].values * factors.values)
            merged[place] = factors
    _require_unshared(model.model, merged.values())
    return tuple(merged.values())


def scaled_points(
    model: GatedModel, components: Any, scale: float
) -> Iterator[tuple[GatePoint, Tensor, str]]:
    """Yields gate points with scaled components, their gates, and the first component's name."""
    parts = model.gated_parts(components, scale)
    for point in parts.points:
        gates = parts.values[0, point.columns].to(model.model.dtype).float().cpu()
        if (scaled := (gates != 1).nonzero()).numel():
            yield point, gates, parts.known.names[point.first_column + int(scaled[0])]


def _of_point(model: GatedModel, point: GatePoint, gates: Tensor, name: str) -> tuple[Factors, ...]:
    """Returns the factors of a gate point, whose first scaled component is `name`.

    Raises:
        UnsupportedModel: The gate is not a factor on weights.
    """
    if point.place == "routing":
        return (Factors(point, "experts", gates),)
    if point.place == "update":
        raise UnsupportedModel(
            f"{name} cannot be exported exactly: what a decoder layer adds is the sum of its "
            f"attention and its MLP block; export {name}A+{name}M"
        )
    weight = getattr(point.module, "weight", None)
    if isinstance(weight, Tensor) and weight.dim() == 2:
        return (_on_projection(point, gates),)
    if point.place == "output":
        return _block_of_experts(model, point, gates, name)
    raise UnsupportedModel(
        f"{name} cannot be exported exactly: a norm ({point.path}) mixes the heads before their "
        "projection, so no matrix has a head's columns alone; ablate it while the model runs, with "
        "`model.ablated`"
    )


def _on_projection(point: GatePoint, gates: Tensor) -> Factors:
    """Returns the factors of a gate point; for a block without a bias, on the input."""
    if point.place == "input":
        return Factors(point, "input", gates.repeat_interleave(point.width))
    inputs, outputs = widths(point.module)
    if getattr(point.module, "bias", None) is None:
        return Factors(point, "input", gates.expand(inputs).clone())
    return Factors(point, "output", gates.expand(outputs).clone())


@torch.no_grad()
def _block_of_experts(
    model: GatedModel, point: GatePoint, gates: Tensor, name: str
) -> tuple[Factors, ...]:
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
    factors = [Factors(experts, "experts", gates.expand(experts.units).clone())]
    output_with = _replayed(model, point)
    output = output_with({})
    for path, module in point.module.named_modules():
        full = f"{point.path}.{path}"
        shared = isinstance(module, nn.Linear) and module.out_features == output.shape[-1]
        if shared and not full.startswith(f"{experts.path}."):
            factors.append(_on_projection(replace(point, path=full, module=module), gates))
    halves = [replace(one, values=torch.full_like(one.values, 0.5)) for one in factors]
    if not _agree(0.5 * output, output_with(scaled_tensors(model, halves))):
        raise refusal
    return tuple(factors)


def _require_unshared(model: nn.Module, factors: Iterable[Factors]) -> None:
    """Refuses a projection that shares its weights with another part of the model.

    Raises:
        UnsupportedModel: Scaling it would change that part as well.
    """
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for one in factors:
        for parameter in one.module.parameters(recurse=False):
            others = [name for name in names[id(parameter)] if not name.startswith(f"{one.path}.")]
            if others:
                raise UnsupportedModel(
                    f"{one.path} shares its weights with {others[0]}: an exported model would "
                    "lose both; ablate the component while the model runs, with `model.ablated`"
                )


@torch.no_grad()
def scaled_tensors(model: GatedModel, factors: Iterable[Factors]) -> dict[str, Tensor]:
    """Returns the tensors that change when factors are multiplied into the weights.

    Returns:
        New values by name of the parameter, on its device and in its number format.

    Raises:
        UnsupportedModel: The outputs of some experts are linear in none of their parameters.
    """
    changed: dict[str, Tensor] = {}
    for one in factors:
        if one.side == "experts":
            for name in expert_parameters(model, one.point):
                parameter = one.module.get_parameter(name)
                changed[f"{one.path}.{name}"] = _scaled(parameter, one.values)
            continue
        name = f"{one.path}.weight"
        weight = changed.get(name, one.module.get_parameter("weight").detach())
        along_rows = (one.side == "input") == is_transposed(one.module)
        changed[name] = _scaled(weight, one.values, axis=0 if along_rows else 1)
        if one.side == "output":
            bias = one.module.get_parameter("bias").detach()
            changed[f"{one.path}.bias"] = _scaled(bias, one.values)
    return changed


@torch.no_grad()
def expert_parameters(model: GatedModel, experts: GatePoint) -> tuple[str, ...]:
    """Returns the names of the parameters in which the outputs of experts are linear.

    They are the last matrix of every expert and its bias, if any. Candidates are tested on a few
    tokens: factors on them must equal gates.

    Raises:
        UnsupportedModel: There is no such parameter.
    """
    point = replace(experts, first_column=0)
    parameters = dict(point.module.named_parameters(recurse=False))
    values = torch.linspace(0.5, 2.0, point.units, device=model.device)
    output_with = _replayed(model, point)
    with ActiveGates((point,), values[None], every_row=True):
        gated = output_with({})
    matrices = [name for name, parameter in parameters.items() if parameter.dim() == 3]
    for name in sorted(matrices, key=lambda name: "down" not in name):
        group = tuple(member for member in (name, f"{name}_bias") if member in parameters)
        scaled = {f"{point.path}.{member}": _scaled(parameters[member], values) for member in group}
        if _agree(gated, output_with(scaled)):
            return group
    raise UnsupportedModel(
        f"the experts of {experts.path} cannot be exported exactly: no matrix of theirs scales "
        "their output; ablate them while the model runs, with `model.ablated`"
    )


def _scaled(tensor: Tensor, values: Tensor, *, axis: int = 0) -> Tensor:
    """Multiplies a parameter by factors along an axis, in float32."""
    shape = [1] * tensor.dim()
    shape[axis] = -1
    return (tensor.float() * values.to(tensor.device).reshape(shape)).to(tensor.dtype)


def _replayed(model: GatedModel, point: GatePoint) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """Returns the output of a module on a few tokens, as a function of changed parameters."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    recorded = point.module.register_forward_pre_hook(
        lambda _module, args, options: calls.append((args, options)), with_kwargs=True
    )
    tokens = torch.arange(3, 11, device=model.device)[None] % model.vocabulary
    with recorded, model.in_use():
        model.forward(tokens, torch.ones_like(tokens), keep=1)

    def output_with(changed: Mapping[str, Tensor]) -> Tensor:
        within = {name.removeprefix(f"{point.path}."): tensor for name, tensor in changed.items()}
        output = torch.func.functional_call(point.module, within, *calls[0])
        tensor: Tensor = output[0] if isinstance(output, tuple) else output  # or router logits too
        return tensor

    return output_with


def _agree(expected: Tensor, actual: Tensor) -> bool:
    tolerance = (1e-4 if expected.dtype == torch.float32 else 5e-2) * float(expected.abs().max())
    return float((actual - expected).abs().max()) <= tolerance
