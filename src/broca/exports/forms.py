"""The forms of an export: a PEFT adapter, a checkpoint, and a list of heads with code that uses it.

(IA)^3 adapters (Liu et al., 2022) multiply the input of some layers, or the output of others, by a
vector, which expresses factors on projections. In the list, a head's output is a slice of the input
of an attention output projection, which any library with access to a module's input can scale.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from broca.components import NAMINGS
from broca.errors import UnsupportedModel
from broca.exports.factors import Factors, factors_of, scaled_points, scaled_tensors
from broca.exports.request import ExportRequest, Means
from broca.models import ActiveGates, GatedModel, adapter_in, require_peft
from broca.models.structure import adapted_matrix, is_computed, is_transposed, widths
from broca.results.files import write_beside

VECTORS = "adapter_model.safetensors"
"""File of an adapter's vectors."""

SNIPPETS = {
    name: (files("broca.exports") / "snippets" / f"{name}.txt").read_text(encoding="utf-8")
    for name in ("hooks", "transformer_lens", "nnsight", "pyvene")
}
"""Code that uses a list of heads, by library."""

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

_QUANTIZED = ("Linear4bit", "Linear8bitLt", "FP8Linear", "QLinear", "HQQLinear")
"""Quantized layers whose parameters may look like plain tensors."""


def write_form(
    request: ExportRequest,
    model: GatedModel,
    names: tuple[str, ...],
    folder: Path,
    *,
    base: str | None,
    revision: str | None = None,
    means: Means | None = None,
) -> None:
    """Writes the files of the export; the model is not changed.

    Args:
        request: The request, with form and ablation.
        model: The model.
        names: Names of the components.
        folder: Folder of the files.
        base: Folder or hub id of the base model; None for a model in memory.
        revision: Commit on the hub.
        means: Mean outputs that replace those of the components, under mean ablation.

    Raises:
        UnsupportedModel: Other libraries cannot load the base of the export.
    """
    scale = request.ablation.scale
    if request.form == "weights":
        for path, module in model.model.named_modules():
            if adapted_matrix(module) is not None or is_computed(module):
                raise UnsupportedModel(
                    f"'{model.name}' has an adapter beside its weights, or a rule that computes "
                    f"them ({path}): merge it for an export of `kind` weights, with PEFT's "
                    "`merge_and_unload` or torch.nn.utils.parametrize.remove_parametrizations"
                )
        tensors = changed_tensors(model, names, scale, means=means)
        write_weights(model, tensors, folder, base=None if base is None else Path(base))
        return
    adapter = None if base is None else adapter_in(Path(base))
    reason = model.note
    if adapter is not None and adapter_in(Path(adapter.base).expanduser()) is not None:
        reason = "it is an adapter of an adapter"
    elif request.form == "adapter" and model.adapter.startswith("IA3 "):
        reason = "it has an (IA)^3 adapter, which another one would replace"
    if reason:
        raise UnsupportedModel(
            f"other libraries cannot load '{model.name}' for an export of `kind` {request.form}: "
            f"{reason}; use `kind` weights"
        )
    if request.form == "adapter":
        write_adapter(factors_of(model, names, scale), folder, base=base, revision=revision)
    else:
        content = head_list(model, names, scale)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_beside(folder / "heads.json", f"{text}\n")


def write_adapter(
    factors: Sequence[Factors], folder: Path, *, base: str | None, revision: str | None = None
) -> None:
    """Writes an (IA)^3 adapter with some factors: its configuration and its vectors.

    Raises:
        MissingExtra: PEFT is not installed.
        UnsupportedModel: An adapter cannot express a factor.
    """
    paths = [one.path for one in factors]
    for one in factors:
        if one.side == "experts" or paths.count(one.path) > 1:
            raise UnsupportedModel(
                "an adapter multiplies either the input or the output of a linear layer, which is "
                f"not what ablates {one.path} (its experts, or neurons with their whole block): "
                "use `kind` weights"
            )
    require_peft().IA3Config(
        base_model_name_or_path=base, revision=revision, task_type="CAUSAL_LM",
        inference_mode=True, target_modules=sorted(paths),
        feedforward_modules=sorted(one.path for one in factors if one.side == "input"),
        fan_in_fan_out=any(is_transposed(one.module) for one in factors),
    ).save_pretrained(str(folder))  # fmt: skip
    vectors = {}
    for one in factors:
        vector = one.values[None] if one.side == "input" else one.values[:, None]
        vectors[f"base_model.model.{one.path}.ia3_l"] = vector
    save_file(vectors, folder / VECTORS, metadata={"format": "pt"})


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
    if not means:
        return changed
    parts = model.gated_parts(components, scale)
    with ActiveGates(parts.points, parts.values, replacement=means, every_row=True):
        for point, _, name in scaled_points(model, components, scale):
            bias = getattr(point.module, "bias", None)
            if bias is None:
                raise UnsupportedModel(
                    f"what stands in for {name} cannot be exported: it would go into the bias of "
                    f"{point.path}, which has none; use zero ablation, or ablate it while the "
                    "model runs"
                )
            # the output of no input: also where several gates act on one projection
            nothing = bias.new_zeros(1, 1, widths(point.module)[0])
            changed[f"{point.path}.bias"] = point.module(nothing)[0, 0]
    return changed


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
    shards = [file.stat().st_size for file in base.glob("*.safetensors")] if base else []
    sizes = {"max_shard_size": max(shards)} if len(shards) > 1 else {}
    state = {**model.model.state_dict(), **tensors}
    model.model.save_pretrained(str(folder), state_dict=state, **sizes)
    if model.tokenizer is not None:
        model.tokenizer.save_pretrained(str(folder))


def head_list(model: GatedModel, components: Sequence[str], scale: float) -> dict[str, Any]:
    """Returns the content of `heads.json`.

    Args:
        model: The model.
        components: Names of heads, KV groups (their heads) or attention layers (all heads).
        scale: Factor of their outputs.

    Returns:
        Beside the model and the code for other libraries: the distinct (layer, head) pairs in
        order, and the slices [start, stop) of a module's input by the module's dotted name.

    Raises:
        BrocaError: A name is invalid, or the model has no such component.
        UnsupportedModel: A component is not a set of query heads.
    """
    by_layer = {projection.layer: projection for projection in model.structure.projections}
    heads: set[tuple[int, int]] = set()
    count = 0
    for component in model.gated_parts(components).named:
        if not NAMINGS[component.kind].only_heads:
            raise UnsupportedModel(
                f"{component.name} is not a query head: `kind` heads lists heads, KV groups and "
                "attention layers; use `kind` adapter"
            )
        projection = by_layer[component.layer]
        own = component.heads(projection.heads, projection.kv_heads)
        heads |= {(component.layer, head) for head in own}
        count += len(own)
    if scale not in (0.0, 1.0) and count > len(heads):
        raise UnsupportedModel(
            f"`kind` heads lists a head once, and some are scaled by {scale:g} twice: name each in "
            "one component"
        )
    slices: dict[str, list[list[int]]] = {}
    for layer, head in sorted(heads):
        projection = by_layer[layer]
        start = head * projection.head_dim
        slices.setdefault(projection.entrance.path, []).append([start, start + projection.head_dim])
    return {
        "model": model.name, "architecture": model.architecture,
        "fingerprint": model.fingerprint, "scale": scale,
        "heads": [list(pair) for pair in sorted(heads)], "slices": slices, "snippets": SNIPPETS,
    }  # fmt: skip
