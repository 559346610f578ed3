"""Components as a list for other libraries, with code that uses it there.

The heads' outputs are slices of the input of the attention output projections: with a module's
name, a start and a stop, any library with access to a module's input can scale them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from broca.components import NAMINGS, Component
from broca.errors import UnsupportedModel
from broca.models import GatedModel, captured

FILE = "heads.json"

HOOKS = '''\
import json

DATA = json.load(open("heads.json"))

def ablate(model):
    """Scales the heads of a model of transformers; call .remove() on what is returned to undo."""
    def hook(slices):
        def scale(module, args):
            hidden = args[0].clone()
            for start, stop in slices:
                hidden[..., start:stop] *= DATA["scale"]
            return (hidden, *args[1:])
        return scale
    return [
        model.get_submodule(path).register_forward_pre_hook(hook(slices))
        for path, slices in DATA["slices"].items()
    ]
'''

TRANSFORMER_LENS = """\
import json
from transformer_lens.model_bridge import TransformerBridge

DATA = json.load(open("heads.json"))
bridge = TransformerBridge.boot_transformers(BASE)  # or hf_model=..., tokenizer=...

def scale(z, hook):  # (rows, tokens, heads, head_dim)
    layer = int(hook.name.split(".")[1])
    for head in [head for at, head in DATA["heads"] if at == layer]:
        z[:, :, head] *= DATA["scale"]
    return z

layers = sorted({layer for layer, _ in DATA["heads"]})
hooks = [(f"blocks.{layer}.attn.hook_z", scale) for layer in layers]
logits = bridge.run_with_hooks(tokens, fwd_hooks=hooks)
"""

NNSIGHT = """\
import json
from nnsight import NNsight

DATA = json.load(open("heads.json"))
model = NNsight(hf_model)  # a model of transformers
with model.trace(tokens):
    for path, slices in DATA["slices"].items():
        for start, stop in slices:
            model.get(path).input[..., start:stop] *= DATA["scale"]
    logits = model.output.logits.save()
"""

PYVENE = """\
import json
import pyvene

DATA = json.load(open("heads.json"))

def scale(slices):
    def intervene(base, source):
        hidden = base.clone()
        for start, stop in slices:
            hidden[..., start:stop] *= DATA["scale"]
        return hidden
    return intervene

def component(path):  # pyvene writes the numbers of layers in brackets
    words = path.split(".")
    return "".join(f"[{word}]" if word.isdigit() else f".{word}" for word in words)[1:] + ".input"

model = pyvene.IntervenableModel(
    [
        {"component": component(path), "intervention": scale(slices)}
        for path, slices in DATA["slices"].items()
    ],
    model=hf_model,  # a model of transformers
)
_, output = model({"input_ids": tokens})
"""

MIB = """\
import json

# the circuit file of the MIB benchmark's circuit track, at the level of nodes
json.dump(json.load(open("heads.json"))["mib"], open("circuit.json", "w"))
"""

SNIPPETS = {
    "hooks": HOOKS,
    "transformer_lens": TRANSFORMER_LENS,
    "nnsight": NNSIGHT,
    "pyvene": PYVENE,
    "mib": MIB,
}
"""Code that uses the list, by library."""


@dataclass(frozen=True)
class HeadSlices:
    """Query heads and the slices of their outputs.

    Attributes:
        heads: Distinct (layer, head) pairs, in order.
        slices: Slices [start, stop) of a module's input, by its dotted name.
    """

    heads: tuple[tuple[int, int], ...]
    slices: dict[str, list[list[int]]]


def head_slices(model: GatedModel, components: Sequence[str]) -> HeadSlices:
    """Finds the query heads of components, and their slices.

    Args:
        model: The model.
        components: Names of heads, KV groups (their heads) or attention layers (all heads).

    Raises:
        BrocaError: A name is invalid, or the model has no such component.
        UnsupportedModel: A component is not a set of query heads.
    """
    parts = model.gated_parts(components)
    by_layer = {projection.layer: projection for projection in model.structure.projections}
    heads: set[tuple[int, int]] = set()
    for component in parts.named:
        heads |= {(component.layer, head) for head in _heads_of(component, by_layer)}
    slices: dict[str, list[list[int]]] = {}
    for layer, head in sorted(heads):
        projection = by_layer[layer]
        start = head * projection.head_dim
        slices.setdefault(projection.entrance.path, []).append([start, start + projection.head_dim])
    return HeadSlices(tuple(sorted(heads)), slices)


def _heads_of(component: Component, by_layer: Mapping[int, Any]) -> Sequence[int]:
    if NAMINGS[component.kind].only_heads:
        projection = by_layer[component.layer]
        return component.heads(projection.heads, projection.kv_heads)
    raise UnsupportedModel(
        f"{component.name} is not a query head: `kind` heads lists heads, KV groups and attention "
        "layers; use `kind` adapter"
    )


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
        components: Names of heads, KV groups or attention layers.
        scale: Factor of their outputs.
        effects: Effect of ablating each head, such as a ranking's; negative = the task needs it.

    Raises:
        UnsupportedModel: A component is not a set of query heads.
    """
    query_heads = head_slices(model, components)
    return {
        "model": model.name,
        "architecture": model.architecture,
        "fingerprint": model.fingerprint,
        "scale": scale,
        "heads": [list(pair) for pair in query_heads.heads],
        "slices": query_heads.slices,
        "mib": mib_circuit(model, query_heads.heads, effects),
        "snippets": SNIPPETS,
    }


def mib_circuit(
    model: GatedModel,
    heads: Sequence[tuple[int, int]],
    effects: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Returns heads as a circuit of nodes, in the format of the MIB benchmark's circuit track.

    The circuit contains the heads and no other heads. The input and the MLP blocks have no score,
    which keeps them in the circuit. The score of a head is the loss of the task without it; without
    `effects` it is 1 for the heads and 0 for the others.

    Args:
        model: The model.
        heads: (layer, head) pairs.
        effects: Effect of ablating each head, by name.
    """
    nodes: dict[str, dict[str, Any]] = {"input": {"in_graph": True}}
    chosen = set(heads)
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


def write_head_list(content: Mapping[str, Any], folder: Path) -> None:
    """Writes the content of `head_list` as `heads.json`."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (folder / FILE).write_text(text, encoding="utf-8")
