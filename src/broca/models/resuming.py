"""Runs a model from the middle: layers below the first ablated layer are equal for all masks.

In the first ablated layer the heads' outputs are still equal before their gates. Its attention can
therefore be resumed at the input of the output projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Shortcut:
    """An attention module whose output is exactly that of its output projection.

    Attributes:
        attention: The attention module.
        projection: Its output projection.
        tuple_length: Length of the tuple that it returns; 0 for a tensor.
    """

    attention: nn.Module
    projection: nn.Module
    tuple_length: int


@contextmanager
def captured_inputs(modules: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """A context that records the input of each module.

    Yields:
        A tensor `(rows, tokens, width)` for each module, filled by a forward pass.
    """
    inputs: list[Tensor | None] = [None] * len(modules)
    with ExitStack() as hooks:
        for index, module in enumerate(modules):

            def hook(
                _module: nn.Module, args: Any, kwargs: dict[str, Any], index: int = index
            ) -> None:
                inputs[index] = args[0] if args else kwargs["hidden_states"]

            hooks.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
        yield inputs


@contextmanager
def captured_outputs(modules: Sequence[nn.Module]) -> Iterator[list[Any]]:
    """A context that records the output of each module."""
    outputs: list[Any] = [None] * len(modules)
    with ExitStack() as hooks:
        for index, module in enumerate(modules):

            def hook(_module: nn.Module, _args: Any, output: Any, index: int = index) -> None:
                outputs[index] = output

            hooks.callback(module.register_forward_hook(hook).remove)
        yield outputs


def tuple_length_of(output: Any) -> int:
    """Returns the length of the tuple that a module returned; 0 for a tensor."""
    return len(output) if isinstance(output, tuple) else 0


@contextmanager
def taken_up(shortcut: Shortcut, outputs: Tensor) -> Iterator[None]:
    """A context in which an attention module starts at its output projection.

    Args:
        shortcut: The module.
        outputs: Outputs of its heads, `(rows, tokens, width)`.
    """

    def project(*args: Any, **kwargs: Any) -> Any:
        projected = shortcut.projection(outputs)
        length = shortcut.tuple_length
        return (projected, *[None] * (length - 1)) if length else projected

    attention = shortcut.attention
    before = attention.__dict__.get("forward")
    attention.forward = project
    try:
        yield
    finally:
        _put_back(attention, before)


def _put_back(module: nn.Module, forward: Any | None) -> None:
    """Restores a module's `forward`: that of its class, or one that another library had set."""
    if forward is None:
        del module.forward
    else:
        module.forward = forward


@contextmanager
def resumed_at(
    layers: Sequence[nn.Module], start: int, hidden: Tensor, *, tuple_length: int
) -> Iterator[None]:
    """A context in which layers below `start` are skipped, and `start` begins with `hidden`.

    Args:
        layers: The decoder layers.
        start: First layer that runs.
        hidden: Input of this layer, `(rows, tokens, hidden)`.
        tuple_length: Length of the tuple that a layer returns; 0 for a tensor.
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
