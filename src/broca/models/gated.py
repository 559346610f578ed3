"""A loaded model with gates on its components, which the engine runs."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from broca.components import Component, ComponentSet, components_in
from broca.errors import BadInput, first_line
from broca.limits import SECONDS, time_limit
from broca.models.caches import Reread, cache_of, whole_cache
from broca.models.checkpoints import described_adapters, unwrapped
from broca.models.gates import ActiveGates, GatePoint, Replacement, choose, kinds_of
from broca.models.resumption import Resumption
from broca.models.sharing import NOTHING, Sharing, proof_length, prove
from broca.models.structure import (
    Structure,
    find_structure,
    input_device,
    require_weights,
    text_config,
)
from broca.models.usage import OF_SAMPLING, Usage, fingerprint, greedy, settings_of
from broca.options import ModelOptions

_FEWEST = 16
"""Fewest positions that pass the output head together: processors round the products of very few
rows differently, and logits would depend on the batch."""


@dataclass(frozen=True, eq=False)
class GatedParts:
    """Components of a model with the gates that scale them.

    Attributes:
        named: The distinct named components.
        known: All components of their kinds, the columns of `values`.
        points: Gate points of `known`.
        values: Gate of every column, `(1, columns)`; 1 for components that are not scaled.
    """

    named: tuple[Component, ...]
    known: ComponentSet
    points: tuple[GatePoint, ...]
    values: Tensor


@dataclass(frozen=True, eq=False)
class GatedModel:
    """A causal language model, its tokenizer and its components.

    Attributes:
        name: Name in messages and results.
        model: The transformers model.
        tokenizer: Its tokenizer.
        structure: Structure of the model.
        kinds: Kinds of its components, such as `heads` or `heads+mlp`.
        components: Its components, by kind and layer, the columns of every matrix.
        points: Gate points of the components.
        source: Name or folder from which it was loaded; None for a model in memory.
        revision: Commit on the hub; None for a model that is not from the hub.
        remote_code: Whether its class comes from its own Python files instead of transformers.
        adapter: Description of its PEFT adapter; empty without an adapter.
        note: What loading changed in the names of its tensors; empty if nothing.
    """

    name: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    structure: Structure = field(repr=False)
    kinds: str
    components: ComponentSet = field(repr=False)
    points: tuple[GatePoint, ...] = field(repr=False)
    _usage: Usage = field(repr=False)
    _own_cache: Any = field(repr=False)
    source: str | None = None
    revision: str | None = field(repr=False, default=None)
    remote_code: bool = field(repr=False, default=False)
    adapter: str = field(repr=False, default="")
    note: str = field(repr=False, default="")
    _proofs: dict[int, Sharing | None] = field(repr=False, default_factory=dict)

    @classmethod
    def wrap(
        cls, model: Any, tokenizer: Any, *, name: str, components: str = "heads", **origin: Any
    ) -> GatedModel:
        """Finds the components of a transformers model and prepares their gates.

        The model is not changed: it is in evaluation mode and frozen only within `in_use`.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer.
            name: Name in messages and results.
            components: Kinds of components to gate, such as `heads` or `heads+mlp`.
            origin: The attributes `source`, `revision`, `remote_code`, `adapter` and `note`.

        Raises:
            UnsupportedModel: The architecture is not covered.
        """
        model = unwrapped(model)
        origin = {"adapter": described_adapters(model), **origin}
        require_weights(model, name)
        usage = Usage.of(model, belongs_to_caller=origin.get("source") is None)
        with usage.held(model, name), torch.no_grad():
            structure = find_structure(model)
            token = torch.zeros(1, 1, dtype=torch.long, device=input_device(model))
            own_cache = cache_of(model(input_ids=token, use_cache=True))
        chosen = choose(structure, components, architecture=type(model).__name__)
        return cls(
            name, model, tokenizer, structure, components, *chosen, usage, own_cache, **origin
        )

    def copy(self) -> GatedModel:
        """Returns a copy of the modules around the same weights, with its own hooks.

        Raises:
            BadInput: Components are ablated now, and the copy would lose them permanently.
        """
        self.require_intact()
        # other buffers may be changed by a forward pass (scaled rotary embeddings)
        shared = [
            *self.model.state_dict(keep_vars=True).values(),
            self.tokenizer, self.components, self._usage, self._own_cache, self._proofs,
        ]  # fmt: skip
        with self.in_use():
            return copy.deepcopy(self, {id(thing): thing for thing in shared})

    def in_use(self) -> AbstractContextManager[None]:
        """A context in which the model is in evaluation mode and its weights are frozen.

        Answers are those of the weights' number format, also within `torch.autocast`.

        When the last context ends, also by an error, every module's training mode and every
        parameter's `requires_grad` are restored. Contexts may be nested, and entered by several
        threads that have a copy each.

        Raises:
            BadInput: The model has no weights, or another thread uses it.
        """
        require_weights(self.model, self.name)
        return self._usage.held(self.model, self.name)

    @contextmanager
    def ablated(self, components: Any, scale: float | None = None) -> Iterator[GatedModel]:
        """Ablates components in every forward pass and `generate` of the model within the context.

        It applies to the transformers model itself, for batches of any size. Gates multiply: a
        nested context adds its components, and a component in both contexts is scaled twice. The
        hooks are removed when the context ends, also by an error. Training mode and `requires_grad`
        are not changed. Models that `torch.compile` compiled run uncompiled within the context,
        because a compiled forward pass would skip the hooks.

        Args:
            components: Names joined by `+`, a list of names or components, or a result with
                `selected`; of any kind, regardless of the kinds with which the model was loaded.
            scale: Factor of their outputs; by default that of the result, else 0, which ablates.

        Raises:
            BadInput: A name is malformed, `scale` is not a finite number, the result selects
                nothing or replaced outputs by others, the model has no weights, or another thread
                uses it.
            UnknownName: The model has no such component.
            UnsupportedModel: The model has no components of such a kind.
        """
        require_weights(self.model, self.name)
        gated = self.gated_parts(components, _scale_of(components) if scale is None else scale)
        names = [component.name for component in gated.named]
        with (
            self._usage.ablating(names, self.model, self.name),
            torch.compiler.set_stance("force_eager"),
            ActiveGates(gated.points, gated.values, every_row=True),
        ):
            yield self

    def gated_parts(self, components: Any, scale: float = 0.0) -> GatedParts:
        """Returns the gates that scale some components of any kinds.

        Args:
            components: As for `ablated`.
            scale: Factor of their outputs; 0 ablates.

        Raises:
            BadInput: A name is malformed, or `require_scale` refuses the scale.
            UnknownName: The model has no such component.
            UnsupportedModel: The model has no components of such a kind.
        """
        self.require_scale(scale)
        named, known, points = components_in(components), self.components, self.points
        if named and (kinds := kinds_of(named)) != self.kinds:
            known, points = choose(self.structure, kinds, architecture=self.architecture)
        values = torch.ones(1, len(known), device=self.device)
        values[:, known.columns(named)] = scale
        return GatedParts(tuple(dict.fromkeys(named)), known, points if named else (), values)

    def require_scale(self, scale: float) -> None:
        """Refuses a factor that the weights' number format rounds to 1, or that it cannot hold.

        Raises:
            BadInput: It does; 1 itself passes.
        """
        rounded = torch.tensor(scale, dtype=self.model.dtype).float()
        if not rounded.isfinite() or rounded == 1 != scale:
            raise BadInput(
                f"`scale` must be a finite number that {self.dtype}, the number format of the "
                f"weights, does not round to 1, not {scale:g}: use another, or `dtype` float32"
            )

    def require_measured(self, measured: str, *, of: str, advice: str, dtype: str = "") -> None:
        """Refuses the model if a result was measured on weights of another fingerprint.

        Args:
            measured: The fingerprint; empty if it is not known.
            of: The result.
            advice: What to do.
            dtype: Number format in which it was measured; by default the model's own.

        Raises:
            BadInput: It was.
        """
        digest = self.fingerprint
        if dtype not in ("", self.dtype):
            digest = fingerprint(self.model, dtype=getattr(torch, dtype, None))
        if measured not in ("", digest):
            raise BadInput(
                f"the weights of '{self.name}' are not those of {of} (fingerprint {digest}, not "
                f"{measured}): {advice}"
            )

    def require_intact(self) -> None:
        """Refuses a model whose components `ablated` ablates now.

        Raises:
            BadInput: Components are ablated, and measurements would count as those of the intact
                model.
        """
        if self._usage.ablated:
            raise BadInput(
                f"components of model '{self.name}' are ablated already "
                f"({'+'.join(self._usage.ablated[:5])}): leave `with model.ablated(...)` first"
            )

    def require_unused(self, given: Mapping[str, Any]) -> None:
        """Refuses options of loading, which come too late; see `ModelOptions.require_unused`."""
        ModelOptions.require_unused(given, components=self.kinds, model=self.name)

    def generate(
        self, text: str, *, max_new_tokens: int = 64, chat: bool = False, **options: Any
    ) -> str:
        """Continues a text, greedily unless the options say otherwise.

        Args:
            text: The prompt.
            max_new_tokens: Maximum number of tokens of the continuation, which ends at an end of
                sequence.
            chat: Whether the prompt is a message in the model's chat template.
            options: Passed to transformers' `generate`, such as `do_sample` or `stop_strings`.

        Returns:
            The continuation, without special tokens.

        Raises:
            BadInput: The model has no tokenizer, or no chat template for `chat`; the text is empty
                and the tokenizer has no first token; or the model has no embedding for a token.
        """
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise BadInput(
                f"model '{self.name}' has no tokenizer: give one, `broca.load(hf_model, tokenizer)`"
            )
        first, end, padding = (
            getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")
        )
        if chat and not getattr(tokenizer, "chat_template", None):
            raise BadInput(f"model '{self.name}' has no chat template: leave out `chat`")
        if chat:
            said, render = [{"role": "user", "content": text}], tokenizer.apply_chat_template
            with time_limit(SECONDS, f"the chat template of '{self.name}'"):
                text = render(said, tokenize=False, add_generation_prompt=True)
        prompt = list(tokenizer.encode(text, add_special_tokens=not chat))
        prompt = prompt or [end if first is None else first]
        if prompt == [None]:
            raise BadInput("`text` is empty, and the tokenizer has no token to begin with")
        self.require_embedded(prompt)
        padding = end if padding is None else padding
        options = {"pad_token_id": padding, "tokenizer": tokenizer, **options}
        tokens = torch.tensor([prompt], device=self.device)
        with self.in_use(), torch.no_grad():
            new, _ = self.generated(tokens, longest=max_new_tokens, **options)
        return self.text_after(prompt, new)

    def text_after(self, prompt: list[int], new: list[int]) -> str:
        """Decodes new tokens as they go on from a prompt, without special tokens.

        Decoders of many tokenizers remove the space before the first word that they decode.
        """
        before, whole, alone = (
            str(self.tokenizer.decode(tokens, skip_special_tokens=True))
            for tokens in (prompt, prompt + new, new)
        )
        return whole.removeprefix(before) if whole.startswith(before) else alone

    def generated(
        self, tokens: Tensor, *, longest: int, **settings: Any
    ) -> tuple[list[int], Tensor]:
        """Continues one row with transformers' own loop, under the active gates.

        Args:
            tokens: The prompt, `(1, tokens)`.
            longest: Maximum number of new tokens.
            settings: Further settings of `generate`; by default it is greedy.

        Returns:
            The new tokens, and their logits before any processing, `(new, vocabulary)`.

        Raises:
            BadInput: The model's class cannot generate, or not with the model's settings.
        """
        self._reset_rotary_scaling()
        try:
            with greedy(self.model, keep=OF_SAMPLING if settings.get("do_sample") else ()):
                output = self.model.generate(
                    input_ids=tokens, attention_mask=torch.ones_like(tokens),
                    max_new_tokens=longest, output_logits=True, return_dict_in_generate=True,
                    **settings,
                )  # fmt: skip
        except (AssertionError, AttributeError, ImportError) as error:
            raise BadInput(
                f"model '{self.name}' cannot generate ({first_line(error)}): its class has no "
                "`generate`, or its generation_config names what this machine lacks; change that"
            ) from error
        return output.sequences[0, tokens.shape[1] :].tolist(), torch.cat(output.logits)

    @property
    def architecture(self) -> str:
        """Class of the model in transformers."""
        return type(self.model).__name__

    @property
    def device(self) -> torch.device:
        """Device of the input tokens."""
        return input_device(self.model)

    @property
    def dtype(self) -> str:
        """Floating-point type of the weights, such as `float32`."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def heads(self) -> int:
        """Number of query heads of an attention layer."""
        return self.structure.projections[0].heads

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads of an attention layer."""
        return self.structure.projections[0].kv_heads

    @property
    def fingerprint(self) -> str:
        """Digest of the weights.

        It is computed once; for a caller's model once in every outermost `in_use`, because the
        caller may train it in between.
        """
        return self._usage.fingerprint

    @property
    def identity(self) -> str:
        """Digest of all that determines an answer: weights, settings, adapters, tokenizer."""
        settings = settings_of(self.model, self.tokenizer)
        content = f"{self.fingerprint} {settings}".encode()
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def max_length(self) -> int:
        """Maximum number of input tokens, from the configuration as in lm-eval."""
        from lm_eval.models.utils import resolve_max_length

        return int(resolve_max_length(text_config(self.model.config), self.tokenizer))

    def describe(self) -> str:
        """Returns a description of the components in one line."""
        attention = self.structure.projections
        of_layers = (f"{p.heads} query heads on {p.kv_heads} KV heads" for p in attention)
        text = (
            f"{self.name}: {sum(p.heads for p in attention)} heads in {len(attention)} layers, "
            f"{' or '.join(dict.fromkeys(of_layers))}, {self.architecture}, {self.dtype}"
        )
        if self.kinds != "heads":
            text += f"; components: {len(self.components)} {self.kinds}"
        if text_config(self.model.config) is not self.model.config:
            text += "; its text part alone"
        if self.structure.not_covered:
            text += f"; {len(self.structure.not_covered)} layers without attention heads left alone"
        return f"{text}; {self.note}" if self.note else text

    def gates(
        self, values: Tensor, *, replacement: Replacement | None = None, force: bool = False
    ) -> ActiveGates:
        """Returns the gates of a batch, `(rows, components)`; see `ActiveGates`."""
        return ActiveGates(
            self.points, values.to(self.device), replacement=replacement, force=force
        )

    @cached_property
    def first_layers(self) -> tuple[int, ...]:
        """Returns the decoder layer of every component, in column order: `(components,)`."""
        return tuple(component.layer for component in self.components)

    @cached_property
    def resumption(self) -> Resumption:
        """Where the model can be run from the middle."""
        return Resumption(self)

    @cached_property
    @torch.inference_mode(False)  # in which tensors have no gradients, for good
    def differentiable(self) -> bool:
        """Whether answers have gradients with respect to the gates; tested once on a few tokens.

        Some kernels, especially of quantized weights, have no backward pass or silently omit it.
        """
        tokens = torch.arange(6, device=self.device)[None] % self.vocabulary
        gates = torch.ones(1, len(self.components), device=self.device, requires_grad=True)
        try:
            with self.in_use(), torch.enable_grad(), self.gates(gates):
                logits, _ = self.forward(tokens, torch.ones_like(tokens), keep=6)
                # of log-likelihoods, as in a run: smaller gradients would vanish in half precision
                likely = logits.float().log_softmax(-1)[..., 0].sum()
                (slopes,) = torch.autograd.grad(likely, gates)
        except (RuntimeError, NotImplementedError):
            return False
        reached = {
            layer for layer, slope in zip(self.first_layers, slopes[0], strict=True) if slope
        }
        return bool(slopes.isfinite().all()) and reached == set(self.first_layers)

    @property
    def vocabulary(self) -> int:
        """Size of the vocabulary."""
        table: Any = self.model.get_input_embeddings()
        table = getattr(table, "original_module", table)  # adapters wrap it
        return int(getattr(table, "base_layer", table).num_embeddings)

    def require_embedded(self, tokens: Iterable[int]) -> None:
        """Refuses tokens that the model has no embedding for.

        Raises:
            BadInput: The message names the first of them.
        """
        size = self.vocabulary
        for token in tokens:
            if token >= size:
                text = "" if self.tokenizer is None else repr(self.tokenizer.decode([token]))
                raise BadInput(
                    f"token {token} {text} has no embedding in model '{self.name}', which has "
                    f"{size}: its tokenizer has more tokens than the model; resize the embeddings "
                    "(resize_token_embeddings) and train them, or give the model's own tokenizer"
                )

    @cached_property
    def _forward_parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.model.forward).parameters)

    def sharing(self, length: int) -> Sharing:
        """Returns what rows of up to `length` tokens may share; it is proved once.

        A proof that allows everything holds for shorter rows too.
        """
        for proved, result in self._proofs.items():
            if proved >= length and result is not None and result.complete:
                return result
        for tested in (proof_length(length), length):
            if tested not in self._proofs:
                self.require_intact()
                with self.in_use():
                    self._proofs[tested] = prove(self, tested)
            result = self._proofs[tested]
            if result is not None:
                return result
        return NOTHING

    def _reset_rotary_scaling(self) -> None:
        """Undoes the growth of rotary embeddings that scale with the longest row so far.

        Otherwise an answer would depend on the rows that were run before.
        """
        for module, kind in self._growing_rotary:
            original = getattr(module, f"{kind}original_inv_freq")
            module.register_buffer(f"{kind}inv_freq", original, persistent=False)
            setattr(module, f"{kind}max_seq_len_cached", module.original_max_seq_len)

    @cached_property
    def _growing_rotary(self) -> tuple[tuple[Any, str], ...]:
        """Rotary embeddings that grow, each with the kind of layers in its names, or none."""
        return tuple(
            (module, name.removesuffix("original_inv_freq"))
            for module in self.model.modules()
            if "dynamic" in str(getattr(module, "rope_type", ""))
            for name in {**vars(module), **module._buffers}
            if name.endswith("original_inv_freq")
        )

    def forward(
        self,
        tokens: Tensor,
        attention_mask: Tensor,
        *,
        keep: int | Sequence[int],
        cache: Any | None = None,
        use_cache: bool = False,
    ) -> tuple[Tensor, Any]:
        """Runs the model on left-padded rows, within `in_use`.

        Args:
            tokens: New tokens, `(rows, new)`.
            attention_mask: 1 for tokens and 0 for padding, `(rows, past + new)`.
            keep: Number of last positions whose logits are returned, of all rows or of each. No
                other positions pass the output head if there is a number for each row.
            cache: The cache of an earlier call, for the `past` tokens.
            use_cache: Whether to return a cache.

        Returns:
            Logits `(rows, keep, vocabulary)`, or `(positions, vocabulary)` row by row if there is a
            number for each, and the cache.

        Raises:
            RuntimeError: The model is in training mode.
            BadInput: The model has no embedding for a token.
        """
        if self.model.training:
            raise RuntimeError(f"model '{self.name}' is in training mode: run it within `in_use()`")
        arguments: dict[str, Any] = {"use_cache": use_cache}
        if isinstance(cache, Reread):
            tokens, cache = torch.cat([cache.tokens, tokens], dim=1), None
        elif cache is None and use_cache:
            cache = whole_cache(self.model.config, self._own_cache)
        if cache is None:
            if int(tokens.max()) >= self.vocabulary:
                self.require_embedded(tokens.flatten().tolist())
            self._reset_rotary_scaling()
        else:
            renamed = "cache" in self._forward_parameters
            arguments["cache" if renamed else "past_key_values"] = cache
        if cache is not None or not bool(attention_mask.all()):  # as transformers' own loop does
            arguments["attention_mask"] = attention_mask
            if "position_ids" in self._forward_parameters:
                positions = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
                arguments["position_ids"] = positions[:, -tokens.shape[1] :]
        most = keep if isinstance(keep, int) else max(1, *keep)
        if "logits_to_keep" in self._forward_parameters:
            arguments["logits_to_keep"] = most
        arguments["input_ids"] = tokens
        if isinstance(keep, int):
            output = self.model(**arguments)
            logits = output.logits[:, -keep:]
        else:
            output, logits = self._run_at(keep, most, arguments)
        filled = cache_of(output) if use_cache else None
        if use_cache and filled is None:
            filled = Reread(tokens)
        return logits, filled

    def run_whole(
        self, tokens: Tensor, attention_mask: Tensor, *, keep: int = 1, use_cache: bool = False
    ) -> tuple[Tensor, Any]:
        """Runs every layer at every position; see `forward`.

        Otherwise positions without logits skip layers that read the keys of lower ones (Gemma 4).

        Returns:
            Logits `(rows, keep, vocabulary)`, and the cache.
        """
        rows, length = tokens.shape
        of_rows = [length, *[keep] * (rows - 1)]  # all of one row alone: logits take memory
        logits, cache = self.forward(tokens, attention_mask, keep=of_rows, use_cache=use_cache)
        return logits[length - keep :].reshape(rows, keep, -1), cache

    def _run_at(
        self, keep: Sequence[int], most: int, arguments: dict[str, Any]
    ) -> tuple[Any, Tensor]:
        """Runs the model, so that its output head reads no other positions than those to keep.

        Args:
            keep: Number of last positions of each row.
            most: The largest of them, or 1.
            arguments: Passed to the model.

        Returns:
            The model's output, and the logits, `(positions, vocabulary)`.
        """
        kept = torch.arange(most, 0, -1) <= torch.tensor(keep)[:, None]  # (rows, most)
        needed, passed = kept.flatten().nonzero()[:, 0], False
        index = needed
        if 0 < len(needed) < _FEWEST:
            index = torch.cat([needed, needed[:1].expand(_FEWEST - len(needed))])

        def picked(states: Tensor) -> Tensor:
            return states[:, -most:].flatten(0, 1)[index.to(states.device)]

        def pick(_head: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
            nonlocal passed
            if inputs[0].dim() != 3 or len(inputs[0]) != len(keep):
                return None
            passed = True
            return picked(inputs[0])[None], *inputs[1:]

        head = self.model.get_output_embeddings()
        with nullcontext() if head is None else head.register_forward_pre_hook(pick):
            output = self.model(**arguments)
        logits = output.logits[0] if passed else picked(output.logits)
        return output, logits[: len(needed)]


def _scale_of(components: Any) -> float:
    """Returns the factor by which a result's components were ablated; 0 for names.

    Raises:
        BadInput: The result selects nothing, or replaced their outputs by others.
    """
    if not getattr(components, "selected", True):
        raise BadInput(f"this {components.kind} selects no components: there is nothing to ablate")
    ablation = getattr(components, "ablation", None)
    if ablation is not None and ablation.kind != "zero":
        raise BadInput(
            f"the outputs were replaced by {ablation.kind} ablation, which needs the run's items: "
            "give a `scale`, such as 0"
        )
    return 0.0 if ablation is None else float(ablation.scale)
