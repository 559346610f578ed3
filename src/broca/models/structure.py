"""Finds the attention output projection of every decoder layer by its function, not by its name.

The output projection is the first matrix of a decoder layer whose *input* already mixes tokens:
earlier matrices (query, key and value projections, a parallel MLP) process each token separately.
One forward pass shows it. The first and the last row of the probe batch are undisturbed; in row i+1
the first token is disturbed only at the input of decoder layer i. Within layer i, the output
projection is the first projection whose input *at a later token* differs between row i+1 and row 0
by more than the two undisturbed rows differ. It must write into the residual stream, and attention
blocks of one class must agree in the name of theirs. A layer may read the keys and values of a
lower one (Gemma 4), and no later token may happen to look at the first: where nothing mixes, other
tokens are tried, with the first one disturbed in all layers below, or in one.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from broca.errors import BadInput, UnsupportedModel
from broca.models.caches import cache_of
from broca.results.checks import NotCovered

PROBE_TOKENS = 8
"""Length of the probe."""

_NEAR = 4
"""Number of first tokens of the probe that are not compared: a causal convolution of width 4 would
mix them with the first one."""

_PROBES = 5
"""Maximum number of probes, of which all but the first are for layers where nothing mixed."""

_DEPTH_FIELDS = ("decoder_layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEAD_COUNT_FIELDS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_COUNT_FIELDS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")


@dataclass(frozen=True)
class NamedModule:
    """A module of a layer, and its dotted name."""

    path: str
    module: nn.Module


@dataclass(frozen=True)
class OutputProjection:
    """The output projection of an attention layer.

    Attributes:
        layer: Decoder layer, from 0.
        path: Dotted name in the model.
        module: The module itself (`nn.Linear` or transformers' `Conv1D`).
        heads: Number of query heads, whose outputs are concatenated in its input.
        head_dim: Width of a head's output; heads x head_dim is the width of the input.
        kv_heads: Number of key/value heads of the layer.
        norm: A norm over all heads before the projection, or None. A norm mixes the heads, which
            are then gated at its input.
    """

    layer: int
    path: str
    module: nn.Module
    heads: int
    head_dim: int
    kv_heads: int
    norm: NamedModule | None = None

    @property
    def entrance(self) -> NamedModule:
        """The module whose input is the concatenation of the heads' outputs."""
        return self.norm or NamedModule(self.path, self.module)


@dataclass(frozen=True)
class LayerParts:
    """The parts of a decoder layer.

    Attributes:
        layer: Decoder layer, from 0.
        decoder_layer: The decoder layer.
        attention: The attention output projection, or None.
        gap: Why there is no such projection; empty otherwise.
        feed_forward: The module whose output is the output of the MLP block: its last projection,
            or the whole block if it has experts. None if there is no single module.
        experts: The module that runs routed experts, `module(hidden, index, weights)`, or None.
        expert_count: Number of experts.
    """

    layer: int
    decoder_layer: NamedModule
    attention: OutputProjection | None
    gap: str
    feed_forward: NamedModule | None
    experts: NamedModule | None
    expert_count: int


@dataclass(frozen=True)
class Structure:
    """The parts of a model, layer by layer.

    Attributes:
        row_axis: Axis of the rows in what a layer reads and writes; several residual streams may
            precede them (Gemma 3n).
    """

    parts: tuple[LayerParts, ...]
    row_axis: int = 0

    @property
    def layers(self) -> int:
        """Number of decoder layers."""
        return len(self.parts)

    @property
    def projections(self) -> tuple[OutputProjection, ...]:
        """The attention output projections."""
        return tuple(part.attention for part in self.parts if part.attention is not None)

    @property
    def not_covered(self) -> tuple[NotCovered, ...]:
        """The layers that have no attention heads to gate."""
        return tuple(
            NotCovered(part.layer, part.decoder_layer.path, part.gap)
            for part in self.parts
            if part.attention is None
        )


def text_config(config: Any) -> Any:
    """Returns the part of a transformers configuration that describes the text decoder."""
    get = getattr(config, "get_text_config", None)
    return get(decoder=True) if get is not None else config


def head_counts(config: Any) -> list[int]:
    """Returns the number of query heads of every layer by a text decoder's configuration.

    It is 0 where none is named. Layers may differ (dots.3, Laguna).
    """
    layers = range(_first_int(config, _DEPTH_FIELDS) or 1)
    counts = [_first_int(_of_layer(config, n), _HEAD_COUNT_FIELDS) or 0 for n in layers]
    return getattr(config, "num_attention_heads_per_layer", None) or counts


def _of_layer(config: Any, layer: int) -> Any:
    """Returns the configuration of a layer.

    Where layers differ, what differs cannot be read from the configuration of the model.
    """
    differ = getattr(config, "is_heterogeneous", False)
    return config.per_layer_config[layer] if differ else config


def input_device(model: Any) -> torch.device:
    """Returns the device of a model's input tokens."""
    embedding: nn.Module = model.get_input_embeddings()
    device = next(embedding.parameters()).device
    hook: Any = getattr(embedding, "_hf_hook", None)
    if device.type == "meta" and hook is not None:
        return torch.device(hook.execution_device)  # accelerate moves it there when it is run
    return device


def require_weights(model: Any, name: str) -> None:
    """Refuses a model without weights, as on the device `meta`.

    Raises:
        BadInput: The model has no weights.
    """
    if input_device(model).type == "meta":
        raise BadInput(
            f"model '{name}' has no weights: it is on the device 'meta'; load them with "
            "from_pretrained, or give the model before it was moved there"
        )


@contextmanager
def recorded(
    modules: Mapping[int, nn.Module], *, outputs: bool = False
) -> Iterator[dict[int, Any]]:
    """A context that records the input, or the output, of each module.

    Yields:
        The values of the last forward pass within the context, by the modules' keys: inputs are
        tensors `(rows, tokens, width)`.
    """
    values: dict[int, Any] = {}

    def record(
        key: int, _module: nn.Module, args: Any, kwargs: dict[str, Any], *output: Any
    ) -> None:
        values[key] = output[0] if outputs else args[0] if args else kwargs["hidden_states"]

    with ExitStack() as hooks:
        for key, module in modules.items():
            kind = module.register_forward_hook if outputs else module.register_forward_pre_hook
            hooks.enter_context(kind(partial(record, key), with_kwargs=True))
        yield values


def find_structure(model: nn.Module) -> Structure:
    """Finds the output projection of every attention layer of a decoder model.

    Args:
        model: A causal language model of transformers, on its device.

    Raises:
        UnsupportedModel: No decoder layers, or no attention layer, could be found.
    """
    config = text_config(model.config)
    counts = head_counts(config)
    architecture = type(model).__name__
    if not any(counts):
        raise UnsupportedModel(
            f"architecture '{architecture}' is not covered: its configuration names no number of "
            "attention heads; broca needs a decoder-only transformer"
        )
    prefix, layers = _decoder_layers(model, config)
    probed, cache, row_axis = _probe(model, layers)
    for seed in range(1, _PROBES):
        if all(map(_mixes, probed)):
            break
        again, *_ = _probe(model, layers, seed=seed, below=seed % 2 == 1)
        probed = [old if _mixes(old) else new for old, new in zip(probed, again, strict=True)]
    names = {module: name for name, module in model.named_modules()}
    parts: list[LayerParts] = []
    layer_of: dict[nn.Module, int] = {}
    for index, (layer, runs, heads) in enumerate(zip(layers, probed, counts, strict=True)):
        mixed, norm, gap = _mixer(layer, runs, names, heads)
        attention = None
        if mixed is not None and not gap:
            if layer_of.setdefault(mixed, index) != index:
                raise UnsupportedModel(
                    f"architecture '{architecture}' is not covered: layers {layer_of[mixed]} and "
                    f"{index} share one attention block, whose heads cannot be ablated apart"
                )
            width = widths(mixed)[0] // heads
            kv_heads = _kv_heads(cache, index, _of_layer(config, index), heads)
            before = None if norm is None else NamedModule(names[norm], norm)
            attention = OutputProjection(index, names[mixed], mixed, heads, width, kv_heads, before)
        experts = _experts(layer)
        part = LayerParts(
            layer=index, decoder_layer=NamedModule(f"{prefix}.{index}", layer),
            attention=attention, gap=gap,
            feed_forward=_feed_forward(layer, mixed, runs, experts, names),
            experts=None if experts is None else NamedModule(names[experts], experts),
            expert_count=0 if experts is None else _expert_count(experts),
        )  # fmt: skip
        parts.append(part)
    structure = Structure(tuple(parts), row_axis)
    _require_agreement(model, structure)
    if not structure.projections:
        raise UnsupportedModel(
            f"architecture '{architecture}' is not covered: no attention output projection was "
            f"found in its {len(layers)} decoder layers ({parts[0].gap})"
        )
    return structure


def _require_agreement(model: nn.Module, structure: Structure) -> None:
    """Refuses output projections that do not write into the residual stream, or disagree in name.

    Attention blocks of one class have the same parts: where another projection is found in one of
    them, a difference that is not mixing was taken for it.

    Raises:
        UnsupportedModel: The message names the projections.
    """
    modules = dict(model.named_modules())
    named: dict[type[nn.Module], tuple[str, str]] = {}
    for projection in structure.projections:
        _, width = widths(projection.module)
        stream = _first_int(text_config(model.config), ("hidden_size",))
        if width and stream and width != stream:
            raise UnsupportedModel(
                f"architecture '{type(model).__name__}' is not covered: {projection.path}, whose "
                f"input mixes tokens first, has {width} outputs and does not write into the "
                f"residual stream of width {stream}"
            )
        owner, place = projection.path, ""
        while not _is_attention(modules[owner]) and "." in owner:
            owner, _, name = owner.rpartition(".")
            place = f"{name}.{place}".strip(".")
        path, expected = named.setdefault(type(modules[owner]), (projection.path, place))
        if place != expected:
            raise UnsupportedModel(
                f"architecture '{type(model).__name__}' is not covered: the output projection of "
                f"its attention seems to be {path} in one layer and {projection.path} in another"
            )


def _is_attention(module: nn.Module) -> bool:
    name = type(module).__name__.lower()
    return "attention" in name or "attn" in name


def _first_int(config: Any, fields: tuple[str, ...]) -> int | None:
    """Returns the first of `fields` that the configuration holds as an integer."""
    values = (getattr(config, name, None) for name in fields)
    return next((value for value in values if type(value) is int), None)


def _decoder_layers(model: nn.Module, config: Any) -> tuple[str, list[nn.Module]]:
    """Returns the path and the modules of the largest stack of decoder layers that reads text.

    Raises:
        UnsupportedModel: There is none, or a token's logits depend on later tokens.
    """
    architecture = type(model).__name__
    depth, vocabulary = _first_int(config, _DEPTH_FIELDS), int(config.vocab_size)
    stacks = [
        (name, list(module))
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
    ]
    stacks.sort(key=lambda stack: -sum(p.numel() for m in stack[1] for p in m.parameters()))
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(0, vocabulary, (2, PROBE_TOKENS), generator=generator)
    tokens[1, :-1] = tokens[0, :-1]
    tokens[1, -1] = (tokens[0, -1] + 1) % vocabulary
    first = {number: layers[0] for number, (_, layers) in enumerate(stacks)}
    with torch.no_grad(), recorded(first, outputs=True) as ran:  # not an image encoder's layers
        logits = model(input_ids=tokens.to(input_device(model)), use_cache=False).logits.float()
    before, changed = (row[: PROBE_TOKENS - 1] for row in logits)
    if logits.shape[1] == PROBE_TOKENS and (before - changed).abs().max() > 0.1 * before.std():
        raise UnsupportedModel(
            f"architecture '{architecture}' is an encoder here: its logits of a token depend on "
            "later tokens; broca localizes in decoders (for a model that was trained as one, set "
            "is_decoder in its configuration)"
        )
    if not stacks:
        raise UnsupportedModel(
            f"architecture '{architecture}' is not covered: no stack of {depth} decoder layers was "
            "found in it"
        )
    return stacks[min(ran, default=0)]


def adapted_matrix(module: nn.Module) -> nn.Module | None:
    """Returns the matrix that a module of a PEFT adapter wraps; None for other modules."""
    inner = getattr(module, "base_layer", None)
    return inner if isinstance(inner, nn.Module) else None


def is_projection(module: nn.Module) -> bool:
    """Whether a module is a matrix: a linear layer, also with packed weights or an adapter.

    Quantized layers have different shapes and names of weights; all have the widths of input and
    output.
    """
    inner = adapted_matrix(module)
    if inner is not None:
        return is_projection(inner)
    has_children = any(True for _ in module.children())  # an empty container is false by itself
    if isinstance(module, nn.Embedding) or (has_children and not is_computed(module)):
        return False
    return all(widths(module))


def is_computed(module: nn.Module) -> bool:
    """Whether a linear layer computes its weight from others: parametrized, normed or pruned."""
    stored = module._parameters.keys() | module._buffers.keys()
    linear = isinstance(module, nn.Linear) or _is_conv1d(module)
    return linear and "weight" not in stored and isinstance(module.weight, Tensor)


def is_plain(weight: Tensor) -> bool:
    """Whether a weight is an ordinary tensor of floating-point numbers, not a packed one.

    Quantized weights are integers, or of a subclass of `torch.Tensor` that represents other numbers
    (torchao's). Offloaded weights are absent.
    """
    ordinary = type(weight) in (Tensor, nn.Parameter) and not weight.is_meta
    return ordinary and weight.is_floating_point() and weight.element_size() > 1


def is_transposed(module: nn.Module) -> bool:
    """Whether a projection stores its weight as (inputs, outputs), like transformers' Conv1D."""
    return _is_conv1d(adapted_matrix(module) or module)


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__name__ in ("Conv1D", "ParametrizedConv1D")


def widths(module: nn.Module) -> tuple[int, int]:
    """Returns the numbers of inputs and outputs of a projection, 0 if packed weights hide it."""
    matrix = adapted_matrix(module) or module
    weight = getattr(matrix, "weight", None)
    shape: Sequence[int] = (0, 0)
    if isinstance(weight, Tensor) and weight.dim() == 2:
        shape = weight.shape if is_transposed(matrix) else weight.shape[::-1]
    declared = (getattr(matrix, "in_features", None), getattr(matrix, "out_features", None))
    inputs, outputs = (
        width if isinstance(width, int) else stored
        for width, stored in zip(declared, shape, strict=True)
    )
    return inputs, outputs


def _kv_heads(cache: Any, layer: int, config: Any, heads: int) -> int:
    """Returns the number of key/value heads of a layer: the smaller of cached and configured.

    Some models cache keys that are repeated for every query head, and some leave the configured
    number at its default. Latent attention caches one latent for all heads, which is ignored.
    """
    configured = _first_int(config, _KV_COUNT_FIELDS) or heads
    cached = getattr(cache, "layers", [])
    keys = getattr(cached[layer], "keys", None) if layer < len(cached) else None
    latent = hasattr(config, "kv_lora_rank")
    if latent or not isinstance(keys, Tensor) or keys.dim() != 4 or heads % keys.shape[1]:
        return configured
    return min(int(keys.shape[1]), configured)


class _Run(NamedTuple):
    """A run of a projection or norm of a layer in the probe, in the order of the runs.

    Attributes:
        module: The projection or norm.
        mixed: Whether its input mixes tokens.
        width: Width of the input.
    """

    module: nn.Module
    mixed: bool
    width: int


def _mixes(runs: list[_Run]) -> bool:
    return any(run.mixed for run in runs)


def _probe(
    model: nn.Module, layers: list[nn.Module], *, seed: int = 0, below: bool = False
) -> tuple[list[list[_Run]], Any, int]:
    """Runs the probe batch; returns what ran in each layer, the cache, and the axis of the rows.

    If `below`, rows are disturbed from the first layer on, but enter their layer as in row 0.
    """
    generator = torch.Generator().manual_seed(seed)
    vocabulary = int(text_config(model.config).vocab_size)
    row = torch.randint(0, vocabulary, (1, PROBE_TOKENS), generator=generator)
    rows = len(layers) + 2
    tokens = row.repeat(rows, 1).to(input_device(model))

    def disturb(index: int, _module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        hidden = (args[0] if args else kwargs["hidden_states"]).clone()
        # several streams may precede the rows or follow the tokens
        shape = hidden.shape
        axis = next((a for a in range(len(shape) - 1) if shape[a : a + 2] == tokens.shape), None)
        if axis is None:
            return None
        axes.add(axis)
        hidden.select(axis, index + 1).copy_(hidden.select(axis, 0))
        for row in range(index + 1, rows - 1 if below and index == 0 else index + 2):
            first = hidden.select(axis, row).select(axis, 0)
            noise = torch.randn(first.shape, generator=generator).to(first)
            first.copy_(noise * first.float().square().mean().sqrt().to(first))
        if args:
            return (hidden, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": hidden}

    def mixes(index: int, entering: Tensor) -> bool:
        quiet, disturbed, equal = (entering[at, _NEAR:].float() for at in (0, index + 1, -1))
        inexact = 4 * (quiet - equal).norm(dim=-1)  # kernels for GPUs, batches of experts
        rounding = max(1e-3, 4 * torch.finfo(entering.dtype).eps) * quiet.norm(dim=-1)
        # NaN differs not
        return bool(((quiet - disturbed).norm(dim=-1) > torch.maximum(rounding, inexact)).any())

    def watch(index: int, module: nn.Module, args: tuple[Any, ...]) -> None:
        mixed, width = False, 0
        if args and isinstance(args[0], Tensor) and args[0].dim() == 3 and len(args[0]) == rows:
            mixed, width = mixes(index, args[0]), args[0].shape[-1]
        probed[index].append(_Run(module, mixed, width))

    axes: set[int] = set()
    probed: list[list[_Run]] = [[] for _ in layers]
    with ExitStack() as hooks, torch.no_grad():
        for index, layer in enumerate(layers):
            disturbed = partial(disturb, index)
            hooks.enter_context(layer.register_forward_pre_hook(disturbed, with_kwargs=True))
            for module in _leaves(layer):
                hooks.enter_context(module.register_forward_pre_hook(partial(watch, index)))
        output = model(input_ids=tokens, use_cache=True)
    return probed, cache_of(output), max(axes, default=0)


def _leaves(layer: nn.Module) -> Iterator[nn.Module]:
    """Returns modules with weights and without submodules: projections and norms.

    A module of an adapter counts together with the matrix that it wraps, because both read the same
    input; so does a matrix with what computes its weight.
    """
    within: set[nn.Module] = set()
    for module in layer.modules():
        if module in within:
            continue
        if adapted_matrix(module) is not None or is_computed(module):
            within.update(module.modules())
            yield module
            continue
        weighted = [*module.parameters(recurse=False)] or all(widths(module))
        if weighted and not any(True for _ in module.children()):
            yield module


def _mixer(
    layer: nn.Module, runs: list[_Run], names: dict[nn.Module, str], heads: int
) -> tuple[nn.Module | None, nn.Module | None, str]:
    """Returns the first projection of a layer whose input mixes tokens, and the norm before it.

    Where it is not that of attention, attention may run in parallel: then it is the first with a
    mixed input in a part of the layer whose first projection processes each token separately.

    Returns:
        The projection or None; a norm over all of its input or None; and why the projection is not
        the output projection of attention, empty if it is.
    """
    mixing = [run for run in runs if run.mixed]
    first = next((run for run in mixing if is_projection(run.module)), None)
    if first is None:
        return None, None, "no projection of this layer has an input that mixes tokens"
    gap = _attention_gap(layer, first.module, names, heads)
    for part in layer.children() if gap else ():
        within = set(part.modules())
        ran = [run for run in runs if run.module in within and is_projection(run.module)]
        mixed = [run for run in ran if run.mixed]
        if mixed and not ran[0].mixed and not _attention_gap(layer, mixed[0].module, names, heads):
            return mixed[0].module, None, ""
    norm = mixing[0] if mixing[0] is not first and mixing[0].width == first.width else None
    return first.module, norm and norm.module, gap


def _attention_gap(
    layer: nn.Module, module: nn.Module, names: dict[nn.Module, str], heads: int
) -> str:
    """Returns why a module is not an attention output projection; empty if it is."""
    owners = [
        owner
        for owner in layer.modules()
        if owner is not layer and owner is not module and module in set(owner.modules())
    ]
    if not any(map(_is_attention, owners)):
        mixer = type(owners[0]).__name__ if owners else "the layer"
        return f"tokens are mixed by {mixer}, not by attention heads"
    if any(hasattr(owner, "lambda_q1") for owner in owners):
        return f"{names[module]} mixes heads by differential attention"
    width, _ = widths(module)
    sizes = [getattr(owner, name, 0) for owner in owners for name in ("v_head_dim", "head_dim")]
    if (size := next(filter(None, sizes), None)) and width != heads * size:
        return f"{names[module]} has an input of width {width}, not of {heads} heads of {size}"
    if not heads or width % heads:
        return f"{names[module]} has an input of width {width}, which {heads} heads do not divide"
    return ""


def _experts(layer: nn.Module) -> nn.Module | None:
    """Returns the module of a layer that runs routed experts as `module(hidden, index, weights)`.

    By its arguments and weights: in transformers 5.0 DeepSeek-V3's is not named "Experts" yet.
    """
    for module in layer.modules():
        if _expert_count(module):
            parameters = list(inspect.signature(module.forward).parameters)
            if len(parameters) >= 3 and "ind" in parameters[1] + parameters[2]:  # index, indices
                return module
    return None


def _expert_count(module: nn.Module) -> int:
    """Returns the number of experts of a fused module, the length of its 3-D weights."""
    counts = {parameter.shape[0] for parameter in module.parameters() if parameter.dim() == 3}
    return counts.pop() if len(counts) == 1 else 0


def _feed_forward(
    layer: nn.Module,
    mixed: nn.Module | None,
    runs: list[_Run],
    experts: nn.Module | None,
    names: dict[nn.Module, str],
) -> NamedModule | None:
    """Returns the module whose output is the output of a layer's MLP block."""
    mixer = {
        m for child in layer.children() if mixed in set(child.modules()) for m in child.modules()
    }
    executed = [run.module for run in runs if is_projection(run.module)]
    if experts is not None:  # shared and routed experts are added: the whole block
        blocks = [child for child in layer.children() if experts in set(child.modules())]
        others = [m for m in executed if m not in mixer and m not in set(blocks[0].modules())]
        return None if others or blocks[0] is experts else NamedModule(names[blocks[0]], blocks[0])
    outside = [module for module in executed if module not in mixer]
    outside = [module for module in outside if ".mlp." in names[module]] or outside
    last = outside[-1:]
    blocks = [child for child in layer.children() for m in last if m in set(child.modules())]
    inside = [
        m for each in layer.modules() if isinstance(each, nn.ModuleDict) for m in each.modules()
    ]
    other_form = any(p.dim() == 3 for block in blocks for p in block.parameters())
    if not last or last[0] in inside or other_form:  # of experts, adapters or convolutions
        return None
    return NamedModule(names[last[0]], last[0])
