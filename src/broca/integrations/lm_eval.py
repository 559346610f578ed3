"""broca as a model of lm-eval, named `broca`, with the arguments `pretrained=M,ablate=L0H4+L1H8`.

Importing this file registers the model. Releases of lm-eval that read `lm_eval.models` entry points
register it themselves.
"""

import hashlib
import json
from collections.abc import Sequence
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np
import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from broca.engine import Ablation, Engine, EngineOptions
from broca.errors import BadInput, require_known
from broca.models import GatedModel, load
from broca.options import ModelOptions, TaskOptions, names_of
from broca.tasks import Generation, LogLikelihood, Output, RequestTokenizer


@register_model("broca")
class BrocaLM(LM):  # type: ignore[misc]  # lm_eval has no types
    """An lm-eval model with some components ablated.

    Args:
        pretrained: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        ablate: Components to ablate, joined by `+`; none by default.
        scale: Gate of the components; 0 ablates, other values scale.
        token_budget: Maximum number of tokens of a batch; None derives it from the free memory.
        max_length: Maximum number of tokens that the model reads; by default its configuration's.
        enable_thinking: Variable of the chat template; only False is accepted.
        chat_template_args: Other variables of the chat template.
        batch_size: Not used, as `max_batch_size`: lm-eval passes both, and the engine chooses its
            batches.
        max_batch_size: Not used.
        options: Fields of `ModelOptions`.

    Raises:
        BrocaError: The model or a component does not exist, or an argument is unknown.
    """

    def __init__(
        self,
        pretrained: str | GatedModel = "",
        *,
        ablate: str = "",
        scale: float = 0.0,
        token_budget: int | None = None,
        max_length: int | None = None,
        enable_thinking: bool | None = None,
        chat_template_args: dict[str, Any] | None = None,
        batch_size: Any = None,
        max_batch_size: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        known = [*list(signature(BrocaLM).parameters)[:-1], *names_of(ModelOptions)]
        for name in options:
            require_known("`model_args`: argument", name, known, error=BadInput)
        if enable_thinking:
            raise BadInput(
                "`model_args`: enable_thinking=True needs lm-eval's think_end_token, which broca "
                "does not take: use enable_thinking=False"
            )
        if not pretrained:
            raise BadInput("`model_args`: pretrained=MODEL is missing (a folder or a hub id)")
        if str(options.get("device")).startswith("cuda") and not torch.cuda.is_available():
            del options["device"]  # lm-eval's default is cuda:0 without a GPU too
        loading = ModelOptions.of(options).keywords()
        if isinstance(pretrained, GatedModel):
            pretrained.require_unused({**options, "device": None})  # lm-eval always names one
        else:
            pretrained = load(str(pretrained), **loading)
        self._gated = pretrained
        mask = self._gated.components.mask(str(ablate))
        self.ablated = tuple(np.asarray(self._gated.components.names)[mask].tolist())
        self._gates = Ablation(scale=float(scale)).gates(mask[None])
        if float(scale) and not self.ablated:
            raise BadInput(f"`model_args`: scale={scale} is that of heads: name some in ablate=...")
        self._gate = float(scale) if self.ablated else 1.0
        self._engine = Engine(self._gated, EngineOptions(token_budget=token_budget))
        template = dict(chat_template_args or {})
        if enable_thinking is not None:
            template["enable_thinking"] = enable_thinking
        task_options = TaskOptions(
            max_length=max_length, chat_template=bool(template), chat_template_kwargs=template
        )
        self._tokenizer = RequestTokenizer.of(self._gated, task_options)
        self.tokenizer = self._gated.tokenizer
        self.max_length = max_length or self._gated.max_length

    @property
    def identity(self) -> str:
        """Returns the digest of what determines an answer: weights, number format, ablation."""
        parts = [
            self._gated.identity, self._gated.dtype, self._gated.kinds, self.ablated,
            self._tokenizer.identity[1:], self._gate,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Returns log-likelihood and greediness of every continuation after its context."""
        return [
            (output.value, output.greedy)
            for (output,) in self._answers(requests)
            if isinstance(output, LogLikelihood)
        ]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Returns the log-likelihood of every text, in windows as long as the model allows."""
        return [
            sum(output.value for output in outputs if isinstance(output, LogLikelihood))
            for outputs in self._answers(requests)
        ]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Generates greedily after every context, up to its stop strings."""
        return [
            output.text for (output,) in self._answers(requests) if isinstance(output, Generation)
        ]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Writes messages in the tokenizer's chat template."""
        return self._tokenizer.chat(chat_history, add_generation_prompt=add_generation_prompt)

    def chat_template(self, chat_template: bool | str = False) -> str:
        """Returns the tokenizer's chat template; empty if none is requested."""
        if not chat_template:
            return ""
        self._tokenizer.require_chat_template()
        return str(self.tokenizer.chat_template)

    @property
    def tokenizer_name(self) -> str:
        """Identifies prompts of this chat template in lm-eval's cache of requests."""
        return self._tokenizer.name

    def get_model_info(self) -> dict[str, Any]:
        """Returns the description of the model in lm-eval's results."""
        return {
            "model_dtype": self._gated.dtype, "model_fingerprint": self._gated.fingerprint,
            "ablated": list(self.ablated), "gate": self._gate,
        }  # fmt: skip

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Separates ablations in lm-eval's cache of answers.

        lm-eval looks answers up by their request only, in a dictionary that it shares with the
        hook; its keys are prefixed with this model's identity.
        """
        super().set_cache_hook(cache_hook)
        if cache_hook.dbdict is not None:
            prefix = f"broca-{self.identity}-"
            cache_hook.dbdict.encode_key = lambda key: prefix + key

    def _answers(self, requests: Sequence[Instance]) -> list[list[Output]]:
        """Returns the engine's answers to every request, in one or several windows."""
        pieces = [self._tokenizer.requests(instance) for instance in requests]
        for instance, group in zip(requests, pieces, strict=True):
            if instance.request_type == "loglikelihood" and not group:
                raise BadInput(
                    f"task '{instance.task_name}': the answer {instance.args[1]!r} has no token of "
                    f"its own after the prompt {instance.args[0][-20:]!r}, so that lm-eval's rules "
                    "give it no log-likelihood; change the prompt's end or the answer"
                )
        flat = [request for group in pieces for request in group]
        outputs = iter(self._engine.run(flat, self._gates, np.zeros(len(flat), dtype=np.intp)))
        return [list(islice(outputs, len(group))) for group in pieces]
