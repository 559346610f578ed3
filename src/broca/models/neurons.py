"""Feed-forward neurons: their place in the model and their parameters.

A neuron is a coordinate of the input of a feed-forward block's last projection, after the
activation function (and, in gated blocks, a product). Its parameters are the column of that
projection that reads it, and the rows of the earlier projections that write it, with their biases.
The rows are found by probing, not by name: a fused gate and up projection writes a neuron from two
rows, which are halves of the matrix or alternate.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from broca.errors import UnsupportedModel
from broca.models.structure import NamedModule, Structure, is_transposed, recorded, widths


@dataclass(frozen=True)
class NeuronBlock:
    """The neurons of a decoder layer.

    Attributes:
        layer: Decoder layer, from 0.
        part: The last projection of the feed-forward block, whose input are the neurons.
        width: Number of neurons.
        decoder_layer: The decoder layer, for probing.
    """

    layer: int
    part: NamedModule
    width: int
    decoder_layer: NamedModule


@dataclass(frozen=True)
class Slice:
    """The part of a parameter that belongs to neurons.

    Attributes:
        path: The parameter's dotted name.
        parameter: The whole parameter.
        dim: The dimension along which neurons are laid out.
        index: Positions of every neuron of the layer along this dimension, `(neurons, positions)`.
    """

    path: str
    parameter: nn.Parameter
    dim: int
    index: Tensor


def neuron_blocks(structure: Structure) -> tuple[NeuronBlock, ...]:
    """Lists the feed-forward blocks of a model, layer by layer.

    Layers without their own feed-forward block are left out.

    Raises:
        UnsupportedModel: A layer routes its tokens to experts, or no layer has a block.
    """
    blocks = []
    for part in structure.parts:
        if part.experts is not None:
            raise UnsupportedModel(
                f"layer {part.layer} ({part.experts.path}, "
                f"{type(part.decoder_layer.module).__name__}) routes its tokens to experts: "
                "neurons of mixtures of experts are not covered; use `components` 'experts' to "
                "ablate whole experts"
            )
        if part.feed_forward is not None:
            width, _ = widths(part.feed_forward.module)
            blocks.append(NeuronBlock(part.layer, part.feed_forward, width, part.decoder_layer))
    if not blocks:
        raise UnsupportedModel(
            "no feed-forward block was found in the model: `broca scan` lists what it has"
        )
    return tuple(blocks)


def last_token_replaced(block: NeuronBlock, value: Tensor) -> RemovableHandle:
    """A context in which the neurons of the last token are `value`, `(rows, neurons)`."""

    def hook(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        shaped = args[0].reshape(len(value), -1, block.width)  # (rows, tokens, neurons)
        last = value.to(shaped)[:, None]
        replaced = torch.cat([shaped[:, :-1], last], dim=1) if shaped.shape[1] > 1 else last
        return (replaced.reshape(args[0].shape), *args[1:])

    return block.part.module.register_forward_pre_hook(hook)


def neuron_slices(model: nn.Module, blocks: Sequence[NeuronBlock]) -> dict[int, tuple[Slice, ...]]:
    """Finds the parameters of the neurons, layer by layer.

    A backward pass through each block shows the rows of weights that write a neuron; every known
    layout is checked at three neurons.

    Args:
        model: The transformers model.
        blocks: Its feed-forward blocks.

    Raises:
        UnsupportedModel: The rows that write a neuron are laid out in an unknown way.
    """
    names = {module: name for name, module in model.named_modules()}
    return {block.layer: _slices(model, block, names) for block in blocks}


def _slices(model: nn.Module, block: NeuronBlock, names: dict[nn.Module, str]) -> tuple[Slice, ...]:
    down = block.part.module
    columns = torch.arange(block.width)[:, None]
    weight = down.get_parameter("weight")
    slices = [Slice(f"{block.part.path}.weight", weight, 0 if is_transposed(down) else 1, columns)]
    written = _writers(model, block)
    layouts = {
        module: layout
        for module, rows in written.items()
        if (layout := _layout(rows, block.width, widths(module)[1])) is not None
    }
    if not written or len(layouts) < len(written):
        raise UnsupportedModel(
            f"the parameters of the neurons of {block.part.path} cannot be told apart: more than "
            "two rows of weights write each (a norm lies between?), or their order is not covered"
        )
    for module, layout in layouts.items():
        path = names[module]
        dim = 1 if is_transposed(module) else 0
        slices.append(Slice(f"{path}.weight", module.get_parameter("weight"), dim, layout))
        if isinstance(getattr(module, "bias", None), nn.Parameter):
            slices.append(Slice(f"{path}.bias", module.get_parameter("bias"), 0, layout))
    return tuple(slices)


def _writers(model: nn.Module, block: NeuronBlock) -> dict[nn.Module, dict[int, Tensor]]:
    """Returns the modules whose outputs write single neurons, and those of three neurons."""
    outputs: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, _args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, Tensor) and output.shape[-1] in (block.width, 2 * block.width):
            outputs[module] = output if output.requires_grad else output.requires_grad_()
            return outputs[module]
        return None

    device = next(model.parameters()).device
    vocabulary = int(model.get_input_embeddings().num_embeddings)  # type: ignore[operator]
    tokens = torch.arange(3, 9, device=device)[None] % vocabulary
    with ExitStack() as hooks:
        for module in block.decoder_layer.module.modules():
            weight = getattr(module, "weight", None)
            leaf = not any(True for _ in module.children())
            if leaf and isinstance(weight, nn.Parameter) and weight.dim() == 2:
                hooks.enter_context(module.register_forward_hook(keep))
        with torch.enable_grad(), recorded({0: block.part.module}) as inputs:
            model(input_ids=tokens, use_cache=False)
        outputs.pop(block.part.module, None)
        neurons = inputs[0].reshape(-1, block.width)
        written: dict[nn.Module, dict[int, Tensor]] = {}
        for number in {0, 1, block.width - 1}:
            gradients = torch.autograd.grad(
                neurons[:, number].float().sum(),
                list(outputs.values()),
                retain_graph=True,
                allow_unused=True,
            )
            for module, gradient in zip(outputs, gradients, strict=True):
                if gradient is not None:
                    touched = gradient.reshape(-1, gradient.shape[-1]).abs().amax(0).nonzero()[:, 0]
                    written.setdefault(module, {})[number] = touched.cpu()
    return {
        module: rows
        for module, rows in written.items()
        if any(map(len, rows.values())) and max(map(len, rows.values())) <= 2
    }


def _layout(rows: dict[int, Tensor], width: int, outputs: int) -> Tensor | None:
    """Returns the positions of every neuron among a writer's outputs, `(neurons, 1 or 2)`, or None.

    A position may have no gradient if an activation function is flat. The touched positions must be
    within the layout; positions within only one of two layouts distinguish them.
    """
    numbers = torch.arange(width)
    halves = torch.stack([numbers, numbers + width], dim=1)
    pairs = torch.stack([2 * numbers, 2 * numbers + 1], dim=1)
    for layout in [numbers[:, None]] if outputs == width else [halves, pairs]:
        if all(set(touched.tolist()) <= set(layout[n].tolist()) for n, touched in rows.items()):
            return layout
    return None
