"""A loaded model with gates on its components: what the engine runs."""

from __future__ import annotations

import copy
import inspect
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from broca.components import ComponentSet
from broca.models.choosing import choose
from broca.models.fingerprint import fingerprint
from broca.models.gates import ActiveGates, GatePoint, Replacement
from broca.models.resuming import (
    Shortcut,
    captured_inputs,
    captured_outputs,
    resumed_at,
    taken_up,
)
from broca.models.structure import Structure, find_structure, text_config


@dataclass(frozen=True, eq=False)
class GatedModel:
    """A causal language model, its tokenizer and its components.

    Attributes:
        name: What the user called it.
        model: The transformers model, in evaluation mode.
        tokenizer: Its tokenizer.
        structure: What was found in it.
        kinds: Which parts are its components, such as `heads` or `heads+mlp`.
        components: They, kind by kind and layer by layer: the columns of every matrix.
        points: Where their gates act.
    """

    name: str
    model: Any
    tokenizer: Any
    structure: Structure
    kinds: str
    components: ComponentSet
    points: tuple[GatePoint, ...] = field(repr=False)

    @classmethod
    def wrap(
        cls, model: Any, tokenizer: Any, *, name: str, components: str = "heads"
    ) -> GatedModel:
        """Finds the components of a transformers model and prepares their gates.

        Args:
            model: A causal language model of transformers; it is put in evaluation mode and its
                weights are frozen.
            tokenizer: Its tokenizer.
            name: What to call it in messages and results.
            components: Which parts to gate, such as `heads` or `heads+mlp`.

        Raises:
            UnsupportedModel: The architecture is not covered.
        """
        model.eval()
        model.requires_grad_(False)
        structure = find_structure(model)
        chosen, points = choose(structure, components, architecture=type(model).__name__)
        return cls(name, model, tokenizer, structure, components, chosen, points)

    def copy(self) -> GatedModel:
        """A copy of the modules around the same weights, with hooks of its own."""
        shared = [*self.model.parameters(), *self.model.buffers()]
        model = copy.deepcopy(self.model, {id(tensor): tensor for tensor in shared})
        return GatedModel.wrap(model, self.tokenizer, name=self.name, components=self.kinds)

    @property
    def architecture(self) -> str:
        """The model's class in transformers."""
        return type(self.model).__name__

    @property
    def device(self) -> torch.device:
        """The device that takes the input tokens."""
        embedding: nn.Module = self.model.get_input_embeddings()
        return next(embedding.parameters()).device

    @property
    def dtype(self) -> str:
        """The weights' floating-point type, such as `float32`."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def heads(self) -> int:
        """Query heads of one attention layer."""
        return self.structure.projections[0].heads

    @property
    def kv_heads(self) -> int:
        """Key/value heads of one attention layer."""
        return self.structure.projections[0].kv_heads

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the weights: two models of equal fingerprint give equal scores."""
        return fingerprint(self.model)

    @property
    def max_length(self) -> int:
        """The longest input in tokens, read from the configuration as lm-eval reads it."""
        from lm_eval.models.utils import resolve_max_length

        return int(resolve_max_length(text_config(self.model.config), self.tokenizer))

    def describe(self) -> str:
        """One line that says what was found."""
        attention = self.structure.projections
        text = (
            f"{self.name}: {sum(one.heads for one in attention)} heads in {len(attention)} layers, "
            f"{self.heads} query heads on {self.kv_heads} KV heads, {self.architecture}, "
            f"{self.dtype}"
        )
        if self.kinds != "heads":
            text += f"; components: {len(self.components)} {self.kinds}"
        if self.structure.not_covered:
            text += f"; {len(self.structure.not_covered)} layers without attention heads left alone"
        return text

    def gates(
        self, values: Tensor, *, replacement: Replacement | None = None, force: bool = False
    ) -> ActiveGates:
        """Gates of a batch, `(rows, components)`: in force within `with`, see `ActiveGates`."""
        return ActiveGates(
            self.points, values.to(self.device), replacement=replacement, force=force
        )

    @cached_property
    def first_layers(self) -> tuple[int, ...]:
        """The decoder layer of every component, in column order: `(components,)`."""
        return tuple(component.layer for component in self.components)

    @cached_property
    def _layers(self) -> tuple[nn.Module, ...]:
        return tuple(part.whole.module for part in self.structure.parts)

    @cached_property
    def _layer_tuple(self) -> int | None:
        """Length of the tuple that decoder layers return, 0 for a tensor.

        None if layers cannot be skipped: run from the middle, the model gives something else.
        """
        lengths: set[int] = set()
        handles = [
            layer.register_forward_hook(
                lambda _m, _a, out: lengths.add(len(out) if isinstance(out, tuple) else 0)
            )
            for layer in self._layers
        ]
        tokens = torch.arange(6, device=self.device)[None] % self.vocabulary
        attention = torch.ones_like(tokens)
        try:
            with torch.no_grad():
                logits, inputs = self.forward_with_layer_inputs(tokens, attention, keep=6)
        finally:
            for handle in handles:
                handle.remove()
        if len(lengths) != 1 or any(one is None for one in inputs):
            return None
        (length,) = lengths
        middle = len(self._layers) - 1
        hidden = inputs[middle]
        assert hidden is not None
        with torch.no_grad(), resumed_at(self._layers, middle, hidden, tuple_length=length):
            resumed, _ = self.forward(tokens, attention, keep=6)
        return length if torch.equal(resumed, logits) else None

    @property
    def resumable(self) -> bool:
        """Whether the model can be run from the middle; tried once, on a few tokens."""
        return self._layer_tuple is not None

    @cached_property
    def differentiable(self) -> bool:
        """Whether answers have slopes with respect to the gates; tried once, on a few tokens.

        Some kernels, of quantized weights above all, know no way back, or cut it off silently.
        """
        tokens = torch.arange(6, device=self.device)[None] % self.vocabulary
        gates = torch.ones(1, len(self.components), device=self.device, requires_grad=True)
        try:
            with torch.enable_grad(), self.gates(gates):
                logits, _ = self.forward(tokens, torch.ones_like(tokens), keep=6)
                # of log-likelihoods, as in earnest: less would be nothing in half precision
                likely = logits.float().log_softmax(-1)[..., 0].sum()
                (slopes,) = torch.autograd.grad(likely, gates)
        except (RuntimeError, NotImplementedError):
            return False
        reached = {
            layer for layer, slope in zip(self.first_layers, slopes[0], strict=True) if slope
        }
        return bool(slopes.isfinite().all()) and reached == set(self.first_layers)

    @cached_property
    def _shortcuts(self) -> dict[int, Shortcut]:
        """By layer, attention that can be taken up at its output projection; tried once."""
        modules = dict(self.model.named_modules())
        # where a norm mixes the heads, they are gated before it: what follows is no mere projection
        plain = [one for one in self.structure.projections if one.norm is None]
        owners = [modules[one.path.rpartition(".")[0]] for one in plain]
        projections = [one.module for one in plain]
        tokens = torch.arange(6, device=self.device)[None] % self.vocabulary
        attention = torch.ones_like(tokens)
        with (
            torch.no_grad(),
            captured_outputs(owners) as returned,
            captured_outputs(projections) as projected,
            captured_inputs(projections) as mixed,
        ):
            logits, inputs = self.forward_with_layer_inputs(tokens, attention, keep=6)
        found: dict[int, Shortcut] = {}
        for index, one in enumerate(plain):
            output, hidden, outputs = returned[index], inputs[one.layer], mixed[index]
            length = len(output) if isinstance(output, tuple) else 0
            first = output[0] if length else output
            if not isinstance(first, Tensor) or not torch.equal(first, projected[index]):
                continue
            assert hidden is not None
            assert outputs is not None
            shortcut = Shortcut(owners[index], one.module, length)
            with torch.no_grad(), self.resumed_at(one.layer, hidden), taken_up(shortcut, outputs):
                resumed, _ = self.forward(tokens, attention, keep=6)
            if torch.equal(resumed, logits):
                found[one.layer] = shortcut
        return found

    def head_outputs(self) -> AbstractContextManager[list[Tensor | None]]:
        """Within the context, forward passes record what enters the output projections.

        One tensor `(rows, tokens, width)` for each layer of `skippable`, in its order.
        """
        return captured_inputs([one.projection for one in self._shortcuts.values()])

    @property
    def skippable(self) -> tuple[int, ...]:
        """Layers whose attention can be taken up at its output projection."""
        return tuple(self._shortcuts)

    def attention_taken_up(
        self, layer: int, outputs: Tensor | None
    ) -> AbstractContextManager[None]:
        """Within the context, a layer's attention begins with its heads' outputs.

        Args:
            layer: The decoder layer.
            outputs: `(rows, tokens, width)`; None to run the attention as a whole.
        """
        return nullcontext() if outputs is None else taken_up(self._shortcuts[layer], outputs)

    def layer_inputs(self) -> AbstractContextManager[list[Tensor | None]]:
        """Within the context, forward passes record what enters every decoder layer."""
        return captured_inputs(self._layers)

    def forward_with_layer_inputs(
        self, tokens: Tensor, attention_mask: Tensor, *, keep: int
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Runs the model and returns, beside the logits, what entered every decoder layer."""
        with self.layer_inputs() as inputs:
            logits, _ = self.forward(tokens, attention_mask, keep=keep)
        return logits, inputs

    def resumed_at(self, layer: int, hidden: Tensor) -> AbstractContextManager[None]:
        """Within the context, forward passes begin at `layer` with `hidden`.

        Args:
            layer: First decoder layer to run.
            hidden: What enters it, `(rows, tokens, hidden)`.
        """
        assert self._layer_tuple is not None, "the model cannot be run from the middle"
        return resumed_at(self._layers, layer, hidden, tuple_length=self._layer_tuple)

    @property
    def vocabulary(self) -> int:
        """Number of tokens that the model knows."""
        return int(self.model.get_input_embeddings().num_embeddings)

    @cached_property
    def _forward_parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.model.forward).parameters)

    def forward(
        self,
        tokens: Tensor,
        attention_mask: Tensor,
        *,
        keep: int,
        cache: Any | None = None,
        use_cache: bool = False,
    ) -> tuple[Tensor, Any]:
        """Runs the model on left-padded rows.

        Args:
            tokens: New tokens, `(rows, new)`.
            attention_mask: 1 for tokens and 0 for padding, `(rows, past + new)`.
            keep: How many of the last positions to return logits for.
            cache: What an earlier call returned, for the `past` tokens.
            use_cache: Whether to return a cache.

        Returns:
            Logits `(rows, keep, vocabulary)` and the cache.
        """
        new = tokens.shape[1]
        arguments: dict[str, Any] = {"use_cache": use_cache}
        if cache is not None:
            arguments["past_key_values"] = cache
        if not bool(attention_mask.all()) or cache is not None:
            arguments["attention_mask"] = attention_mask
        if "position_ids" in self._forward_parameters:
            positions = attention_mask.long().cumsum(-1) - 1
            arguments["position_ids"] = positions.clamp(min=0)[:, -new:]
        if "logits_to_keep" in self._forward_parameters:
            arguments["logits_to_keep"] = keep
        output = self.model(input_ids=tokens, **arguments)
        return output.logits[:, -keep:], output.past_key_values if use_cache else None
