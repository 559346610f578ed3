"""Feed-forward neurons: their place in the model and their parameters.

A neuron is a coordinate of the input of a feed-forward block's last projection, after the
activation function (and, in gated blocks, a product). Its parameters are the column of that
projection that reads it, and the rows of the earlier projections that write it, with their biases.
The rows are found by probing, not by name: a fused gate and up projection writes a neuron from two
rows, which are halves of the matrix or alternate.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from broca.errors import UnsupportedModel
from broca.models.structure import (
    NamedModule,
    Structure,
    is_computed,
    recorded,
    text_config,
    widths,
)


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


def parameters_of_neuron(model: nn.Module, block: NeuronBlock) -> int:
    """Returns the number of parameters of a neuron: weights that read it, and what writes it.

    Args:
        model: The transformers model.
        block: A feed-forward block.

    Raises:
        UnsupportedModel: No weights write single neurons.
    """
    written = writers(model, block)
    if not written:
        raise UnsupportedModel(
            f"the parameters of the neurons of {block.part.path} cannot be told apart: more than "
            "two rows of weights write each (a norm lies between?)"
        )
    _, count = widths(block.part.module)
    for module in written:
        inputs, outputs = widths(module)
        biased = isinstance(getattr(module, "bias", None), nn.Parameter)
        count += outputs // block.width * (inputs + biased)
    return count


def writers(model: nn.Module, block: NeuronBlock) -> dict[nn.Module, dict[int, Tensor]]:
    """Returns the modules whose outputs write single neurons, and those of three active neurons."""
    outputs: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, _args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, Tensor) and output.shape[-1] in (block.width, 2 * block.width):
            outputs[module] = output if output.requires_grad else output.requires_grad_()
            return outputs[module]
        return None

    device = next(model.parameters()).device
    vocabulary = int(text_config(model.config).vocab_size)
    tokens = torch.arange(3, 9, device=device)[None] % vocabulary
    with ExitStack() as hooks:
        for module in block.decoder_layer.module.modules():
            weight = getattr(module, "weight", None)
            leaf = is_computed(module) or not any(True for _ in module.children())
            if leaf and isinstance(weight, Tensor) and weight.dim() == 2:
                hooks.enter_context(module.register_forward_hook(keep))
        with torch.enable_grad(), recorded({0: block.part.module}) as inputs:
            model(input_ids=tokens, use_cache=False)
        outputs.pop(block.part.module, None)
        neurons = inputs[0].reshape(-1, block.width)
        written: dict[nn.Module, dict[int, Tensor]] = {}
        # a neuron that the activation function sets to zero has no gradient
        for number in neurons.abs().amax(0).topk(min(3, block.width)).indices.tolist():
            neuron = neurons[:, number].float().sum()
            gradients = torch.autograd.grad(
                neuron, list(outputs.values()), retain_graph=True, allow_unused=True
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
