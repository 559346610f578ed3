"""Runs a model from the middle: layers below the first ablated one are the same for every mask.

In the first ablated layer the heads' outputs are still the same; only what becomes of them differs.
So its attention, too, can be taken up where they enter the output projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Shortcut:
    """An attention module whose output is nothing but what its output projection gives.

    Attributes:
        attention: The attention module.
        projection: Its output projection.
        tuple_length: Length of the tuple that it returns; 0 where it returns a tensor.
    """

    attention: nn.Module
    projection: nn.Module
    tuple_length: int


@contextmanager
def captured_inputs(modules: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """Records the hidden states that enter each module.

    Yields:
        One tensor `(rows, tokens, width)` a module, filled by a forward pass within the context.
    """
    seen: list[Tensor | None] = [None] * len(modules)

    def hook_for(index: int) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            seen[index] = args[0] if args else kwargs["hidden_states"]

        return hook

    with ExitStack() as hooks:
        for index, module in enumerate(modules):
            handle = module.register_forward_pre_hook(hook_for(index), with_kwargs=True)
            hooks.callback(handle.remove)
        yield seen


@contextmanager
def captured_outputs(modules: Sequence[nn.Module]) -> Iterator[list[Any]]:
    """Records what each module returns; filled by a forward pass within the context."""
    seen: list[Any] = [None] * len(modules)

    def hook_for(index: int) -> Any:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            seen[index] = output

        return hook

    with ExitStack() as hooks:
        for index, module in enumerate(modules):
            hooks.callback(module.register_forward_hook(hook_for(index)).remove)
        yield seen


@contextmanager
def taken_up(shortcut: Shortcut, outputs: Tensor) -> Iterator[None]:
    """Makes an attention module begin at its output projection.

    Args:
        shortcut: The module.
        outputs: What its heads would have given, `(rows, tokens, width)`.
    """

    def project(*args: Any, **kwargs: Any) -> Any:
        projected = shortcut.projection(outputs)
        rest = shortcut.tuple_length - 1
        return (projected, *[None] * rest) if shortcut.tuple_length else projected

    attention = shortcut.attention
    before = attention.__dict__.get("forward")
    attention.forward = project
    try:
        yield
    finally:
        _put_back(attention, before)


def _put_back(module: nn.Module, forward: Any | None) -> None:
    """Restores a module's `forward`: its class's own, or one that another library had put there."""
    if forward is None:
        del module.forward
    else:
        module.forward = forward


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
