"""Runs a model from the middle: layers below the first ablated layer are equal for all masks.

In the first ablated layer the heads' outputs are still equal before their gates. Its attention can
therefore be resumed at the input of the output projection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from broca.models.structure import recorded

if TYPE_CHECKING:
    from broca.models.gated import GatedModel


class Resumption:
    """Where a model can be resumed; tested once on a few tokens.

    Args:
        model: The model; its components must be intact.
    """

    def __init__(self, model: GatedModel) -> None:
        self._layers = dict(enumerate(part.decoder_layer.module for part in model.structure.parts))
        # if a norm mixes the heads, they are gated before it, and more than a projection follows
        plain = {p.layer: p for p in model.structure.projections if p.norm is None}
        modules = dict(model.model.named_modules())
        self._attention = {n: modules[p.path.rpartition(".")[0]] for n, p in plain.items()}
        self._projections = {layer: projection.module for layer, projection in plain.items()}
        tokens = torch.arange(6, device=model.device)[None] % model.vocabulary
        attention = torch.ones_like(tokens)
        with model.in_use(), torch.no_grad():
            with (
                recorded(self._layers) as inputs,
                recorded(self._layers, outputs=True) as outputs,
                recorded(self._projections) as mixed,
                recorded(self._projections, outputs=True) as projected,
                recorded(self._attention, outputs=True) as attended,
            ):
                logits, _ = model.forward(tokens, attention, keep=6)

            def same(layer: int, heads: Tensor | None = None) -> bool:
                # without lower layers, on which it may depend, a layer may raise anything
                with suppress(Exception), self.at(layer, inputs[layer], heads):
                    return torch.equal(model.forward(tokens, attention, keep=6)[0], logits)
                return False

            lengths = {_tuple_length(output) for output in outputs.values()}
            self._length = next(iter(lengths), 0)
            # rows come first: some models have several streams of them
            rows = all(values.shape[:2] == tokens.shape for values in inputs.values())
            whole = len(lengths) == 1 and len(inputs) == len(self._layers)
            self.possible = rows and whole and same(len(inputs) - 1)
            """Whether layers can be skipped: the model gives the same result from the middle."""
            self._shortcuts = {n: _tuple_length(output) for n, output in attended.items()}
            for layer, length in list(self._shortcuts.items()):
                first = attended[layer][0] if length else attended[layer]
                exact = layer in projected and isinstance(first, Tensor)
                exact = exact and torch.equal(first, projected[layer])
                if not (self.possible and exact and same(layer, mixed[layer])):
                    del self._shortcuts[layer]

    def layer_inputs(self) -> AbstractContextManager[dict[int, Any]]:
        """A context in which forward passes record the inputs of every decoder layer."""
        return recorded(self._layers)

    def head_outputs(self) -> AbstractContextManager[dict[int, Any]]:
        """A context in which forward passes record the inputs of output projections.

        It has tensors `(rows, tokens, width)` for the layers whose attention can be resumed there.
        """
        return recorded({layer: self._projections[layer] for layer in self._shortcuts})

    @contextmanager
    def in_backward(self, gates: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
        """A context whose backward pass runs the decoder layers again, from their kept inputs.

        Memory is that of one layer, for one more forward pass.

        Args:
            gates: Returns the gates of the batch, under which the layers run again.
        """
        with ExitStack() as undo:
            for layer in self._layers.values():
                kept = partial(
                    checkpoint, layer.forward, use_reentrant=False,
                    context_fn=lambda: (nullcontext(), gates()),
                )  # fmt: skip
                undo.enter_context(patch.object(layer, "forward", kept))
            yield

    @contextmanager
    def at(self, layer: int, hidden: Tensor, heads: Tensor | None = None) -> Iterator[None]:
        """A context in which forward passes start at a decoder layer.

        Args:
            layer: First decoder layer to run.
            hidden: Its input, `(rows, tokens, hidden)`.
            heads: Outputs of its heads, `(rows, tokens, width)`; None to run its whole attention.
        """

        def skip(*args: Any, **kwargs: Any) -> Any:
            states = args[0] if args else kwargs["hidden_states"]
            return (states, *[None] * (self._length - 1)) if self._length else states

        def start(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if args:
                return (hidden, *args[1:]), kwargs
            return args, {**kwargs, "hidden_states": hidden}

        def project(*args: Any, **kwargs: Any) -> Any:
            projected, length = self._projections[layer](heads), self._shortcuts[layer]
            return (projected, *[None] * (length - 1)) if length else projected

        with ExitStack() as undo:
            for below in range(layer):
                undo.enter_context(patch.object(self._layers[below], "forward", skip))
            module = self._layers[layer]
            undo.callback(module.register_forward_pre_hook(start, with_kwargs=True).remove)
            if heads is not None:
                undo.enter_context(patch.object(self._attention[layer], "forward", project))
            yield


def _tuple_length(output: Any) -> int:
    """Returns the length of the tuple that a module returned; 0 for a tensor."""
    return len(output) if isinstance(output, tuple) else 0
