"""Components as a list for other libraries, with code that uses it there.

The heads' outputs are slices of the input of the attention output projections: with a module's
name, a start and a stop, any library with access to a module's input can scale them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import torch

from broca.components import NAMINGS
from broca.errors import UnsupportedModel
from broca.models import GatedModel, captured

FILE = "heads.json"

SNIPPETS = {
    name: (files("broca.exports") / "snippets" / f"{name}.txt").read_text(encoding="utf-8")
    for name in ("hooks", "transformer_lens", "nnsight", "pyvene", "mib")
}
"""Code that uses the list, by library."""


def head_list(
    model: GatedModel,
    components: Sequence[str],
    scale: float,
    *,
    effects: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Returns the content of `heads.json`.

    Args:
        model: The model.
        components: Names of heads, KV groups (their heads) or attention layers (all heads).
        scale: Factor of their outputs.
        effects: Effect of ablating each head, such as a ranking's; negative = the task needs it.

    Returns:
        Beside the model and the code for other libraries: the distinct (layer, head) pairs in
        order, and the slices [start, stop) of a module's input by the module's dotted name.

    Raises:
        BrocaError: A name is invalid, or the model has no such component.
        UnsupportedModel: A component is not a set of query heads.
    """
    by_layer = {projection.layer: projection for projection in model.structure.projections}
    heads: set[tuple[int, int]] = set()
    for component in model.gated_parts(components).named:
        if not NAMINGS[component.kind].only_heads:
            raise UnsupportedModel(
                f"{component.name} is not a query head: `kind` heads lists heads, KV groups and "
                "attention layers; use `kind` adapter"
            )
        projection = by_layer[component.layer]
        own = component.heads(projection.heads, projection.kv_heads)
        heads |= {(component.layer, head) for head in own}
    slices: dict[str, list[list[int]]] = {}
    for layer, head in sorted(heads):
        projection = by_layer[layer]
        start = head * projection.head_dim
        slices.setdefault(projection.entrance.path, []).append([start, start + projection.head_dim])
    return {
        "model": model.name,
        "architecture": model.architecture,
        "fingerprint": model.fingerprint,
        "scale": scale,
        "heads": [list(pair) for pair in sorted(heads)],
        "slices": slices,
        "mib": _mib_circuit(model, heads, effects),
        "snippets": SNIPPETS,
    }


def _mib_circuit(
    model: GatedModel, chosen: set[tuple[int, int]], effects: Mapping[str, float] | None
) -> dict[str, Any]:
    """Returns heads as a circuit of nodes, in the format of the MIB benchmark's circuit track.

    The circuit contains the heads and no other heads. The input and the MLP blocks have no score,
    which keeps them in the circuit. The score of a head is the loss of the task without it; without
    `effects` it is 1 for the heads and 0 for the others.
    """
    nodes: dict[str, dict[str, Any]] = {"input": {"in_graph": True}}
    for layer in range(model.structure.layers):
        for head in range(model.heads):
            inside = (layer, head) in chosen
            score = float(inside)
            if effects is not None:
                score = -effects.get(f"L{layer}H{head}", 0.0)
            nodes[f"a{layer}.h{head}"] = {"in_graph": inside, "score": score}
        nodes[f"m{layer}"] = {"in_graph": True}
    nodes["logits"] = {"in_graph": True}
    configuration = {
        "n_layers": model.structure.layers,
        "n_heads": model.heads,
        "d_model": model.model.get_input_embeddings().embedding_dim,
        "parallel_attn_mlp": has_parallel_mlp(model),
    }
    return {"cfg": configuration, "nodes": nodes, "edges": {}}


@torch.no_grad()
def has_parallel_mlp(model: GatedModel) -> bool:
    """Whether MLP blocks are parallel to attention, so that they do not read its output.

    This is tested on a few tokens: the output of the block must not change when the layer's
    attention is ablated.
    """
    layers = {part.layer for part in model.structure.parts if part.feed_forward is not None}
    layer = next((p.layer for p in model.structure.projections if p.layer in layers), None)
    if layer is None:
        return False
    block = [point for point in model.gated_parts(f"L{layer}M").points if point.layer == layer]
    tokens = torch.arange(3, 9, device=model.device)[None] % model.vocabulary
    attention = torch.ones_like(tokens)
    with model.in_use(), captured(block) as intact:
        model.forward(tokens, attention, keep=1)
    with model.in_use(), model.ablated(f"L{layer}A"), captured(block) as without:
        model.forward(tokens, attention, keep=1)
    return torch.equal(intact[block[0]], without[block[0]])
