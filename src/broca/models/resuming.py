"""Runs a model from the middle: layers below the first ablated one are the same for every mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn


@contextmanager
def captured_layer_inputs(layers: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """Records the hidden states that enter each decoder layer.

    Yields:
        One tensor `(rows, tokens, hidden)` a layer, filled by a forward pass within the context.
    """
    seen: list[Tensor | None] = [None] * len(layers)

    def hook_for(index: int) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            seen[index] = args[0] if args else kwargs["hidden_states"]

        return hook

    with ExitStack() as hooks:
        for index, layer in enumerate(layers):
            handle = layer.register_forward_pre_hook(hook_for(index), with_kwargs=True)
            hooks.callback(handle.remove)
        yield seen


def _put_back(layer: nn.Module, forward: Any | None) -> None:
    """Restores a layer's `forward`: its class's own, or one that another library had put there."""
    if forward is None:
        del layer.forward
    else:
        layer.forward = forward


@contextmanager
def resumed_at(
    layers: Sequence[nn.Module], start: int, hidden: Tensor, *, tuple_length: int
) -> Iterator[None]:
    """Makes the layers below `start` return at once, and `start` begin with `hidden`.

    Args:
        layers: The decoder layers.
        start: First layer that runs.
        hidden: What enters it, `(rows, tokens, hidden)`.
        tuple_length: Length of the tuple that a layer returns; 0 where it returns a tensor.
    """

    def skip(*args: Any, **kwargs: Any) -> Any:
        states = args[0] if args else kwargs["hidden_states"]
        return (states, *[None] * (tuple_length - 1)) if tuple_length else states

    def replace(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (hidden, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": hidden}

    with ExitStack() as undo:
        for layer in layers[:start]:
            undo.callback(_put_back, layer, layer.__dict__.get("forward"))
            layer.forward = skip
        undo.callback(layers[start].register_forward_pre_hook(replace, with_kwargs=True).remove)
        yield
