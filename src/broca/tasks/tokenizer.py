"""Turns lm-eval's requests into tokens, by lm-eval's own rules.

The rules are those of lm-eval's `hf` model: spaces at the end of a context move to the
continuation, an empty context becomes the prefix token, and a prompt that does not fit the model's
context is truncated from the left.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, lru_cache, partial
from threading import RLock
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from jinja2.exceptions import TemplateError
from lm_eval.api.instance import Instance
from lm_eval.models.utils import (
    handle_stop_sequences,
    has_bos_prefix,
    normalize_gen_kwargs,
    resolve_max_length,
)
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from transformers import GenerationConfig
from transformers.utils import chat_template_utils

from broca.errors import BadInput, TaskUnusable, first_line
from broca.limits import SECONDS, time_limit
from broca.options import APPLIED_SETTINGS, REFUSED_SETTINGS, TaskOptions
from broca.tasks.items import Request

if TYPE_CHECKING:
    from broca.models import GatedModel

_OFF = {
    "repetition_penalty": 1, "encoder_repetition_penalty": 1, "num_beams": 1, "guidance_scale": 1,
    "num_beam_groups": 1, "num_return_sequences": 1, "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}  # fmt: skip
"""Values of settings that change nothing, where this is not 0."""

_KNOWN = frozenset(vars(GenerationConfig()))
"""Settings of generations that transformers knows."""

_TEMPLATE_FAULTS = (TemplateError, TypeError, ValueError, AttributeError, LookupError)
"""What a chat template may raise."""


def says_date(tokenizer: Any) -> bool:
    """Whether the chat template of a tokenizer reads the date."""
    return "strftime_now" in str(getattr(tokenizer, "chat_template", None))


_clock = RLock()
"""Held while the clock of transformers is replaced."""


@contextmanager
def on_day(day: str | None) -> Iterator[None]:
    """A context in which `strftime_now` of chat templates says a day, as of midnight.

    Templates get no function as a variable, so the clock of transformers is replaced.
    """
    if day is None:
        yield
        return

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls.fromisoformat(str(day))

    with _clock, patch.object(chat_template_utils, "datetime", Clock):
        yield


class RequestTokenizer:
    """Tokenizes requests for a model.

    Args:
        tokenizer: The model's tokenizer.
        max_length: Maximum number of input tokens of the model.
        options: Variables and the date of the chat template, and another maximum length.
        generation_config: The model's own settings of generations, which a task's replace.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_length: int,
        options: TaskOptions | None = None,
        generation_config: Any = None,
    ) -> None:
        options = options or TaskOptions()
        self._tokenizer, self._max_length = tokenizer, options.max_length or max_length
        self._template_settings = options.template_settings
        self._day = options.chat_template_date if says_date(tokenizer) else None
        own = generation_config or GenerationConfig()
        # the model's own settings that change the text or are not supported, and its own number of
        # new tokens, which transformers prefers to a task's
        self._own_settings, self._own_new_tokens = _that_matter(vars(own)), own.max_new_tokens
        self._generation = str(own.to_dict())
        prefix, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        self._prefix = eos if prefix is None else prefix
        self._eos = None if eos is None else tokenizer.decode(eos, skip_special_tokens=False)
        self._prefix_text = None if self._prefix is None else tokenizer.decode(self._prefix)
        self._context = lru_cache(1)(self.encode)  # once for all choices that follow it
        self._left_out = False

    @classmethod
    def of(cls, model: GatedModel, options: TaskOptions | None = None) -> RequestTokenizer:
        """Returns the tokenizer of requests for a model, with the settings of the options.

        Raises:
            BadInput: The maximum length is more than the model is configured for.
        """
        options = options or TaskOptions()
        require_context(model.model.config, options)
        config = getattr(model.model, "generation_config", None)
        length = model.max_length
        return cls(model.tokenizer, max_length=length, options=options, generation_config=config)

    @property
    def name(self) -> str:
        """Identifies its chat prompts: the source of the tokenizer, its template and settings."""
        origin = str(self._tokenizer.name_or_path).replace("/", "__")
        template = str(self._tokenizer.chat_template)
        if self._template_settings:
            template += json.dumps(self._template_settings, sort_keys=True)
        template += self._day or ""
        return f"{origin}-{zlib.crc32(template.encode()):08x}"

    @property
    def identity(self) -> tuple[int, int, str, str]:
        """Equal for tokenizers that make the same requests, while this object exists."""
        return id(self._tokenizer), self._max_length, self.name, self._generation

    def requests(self, instance: Instance) -> tuple[Request, ...]:
        """Tokenizes an lm-eval request: one request, or several whose values sum (rolling).

        Returns:
            The requests; none if the text is empty.

        Raises:
            TaskUnusable: A kind of request, or a setting of generations, that is not supported.
            BadInput: Its text cannot be scored: it does not fit the model's context, or nothing can
                stand before it.
        """
        kind, task = instance.request_type, instance.task_name or ""
        if kind == "generate_until":
            return (self._generated(task, *instance.args[:2]),)
        if kind == "loglikelihood":
            request = self.loglikelihood(*instance.args[:2])
            return (request,) if request.continuation else ()
        if kind == "loglikelihood_rolling":
            tokens = self.encode(instance.args[0])
            if not tokens:
                return ()
            windows = get_rolling_token_windows(tokens, self._first(), self._max_length, 1)
            return tuple(
                Request("loglikelihood", tuple(before), tuple(after))
                for before, after in map(make_disjoint_window, windows)
            )
        raise TaskUnusable(
            f"task '{task}' asks for '{kind}': broca runs loglikelihood, "
            "loglikelihood_rolling, multiple-choice and generate_until tasks"
        )

    def chat(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool = True
    ) -> str:
        """Writes messages in the tokenizer's chat template, as lm-eval's `hf` model does.

        If the template refuses a system message, it is left out, and noted like one that the
        template does not read. If it reads contents as lists of
        parts and ignores texts, each text is given as a part.

        Raises:
            BadInput: The tokenizer has no chat template, or it refuses the messages.
        """
        self.require_chat_template()
        if self._reads_parts:
            messages = [_in_parts(message) for message in messages]
        without_system = [message for message in messages if message["role"] != "system"]
        render = partial(self._rendered, add_generation_prompt=add_generation_prompt)
        for accepted in (list(messages), without_system):
            try:
                text = render(accepted)
            except _TEMPLATE_FAULTS as error:
                refused = error
            else:
                self._left_out = len(accepted) < len(messages)
                if len(without_system) < len(accepted):
                    with suppress(*_TEMPLATE_FAULTS):
                        self._left_out = text == render(without_system)
                return text
        raise BadInput(
            f"the chat template of the tokenizer refuses the prompt: {first_line(refused)}; leave "
            "out `chat_template`"
        ) from refused

    def _rendered(self, messages: Sequence[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        with on_day(self._day), time_limit(SECONDS, "the chat template of the tokenizer"):
            return str(self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=add_generation_prompt,
                continue_final_message=not add_generation_prompt, **self._template_settings,
            ))  # fmt: skip

    @cached_property
    def _reads_parts(self) -> bool:
        """Whether the template takes contents as lists of parts alone.

        Such a template iterates the letters of a text, and every prompt becomes the same.

        Raises:
            BadInput: The template leaves out every content.
        """
        texts, refuses = [{"role": "user", "content": text} for text in ("one", "two")], False
        for messages in (texts, list(map(_in_parts, texts))):
            try:
                one, two = (self._rendered([m], add_generation_prompt=True) for m in messages)
            except _TEMPLATE_FAULTS:
                refuses = True
            else:
                if one != two:
                    return messages is not texts
        if refuses:  # a message alone, for a reason that `chat` will give
            return False
        raise BadInput(
            "the chat template of the tokenizer leaves out what the user says, so that all prompts "
            "are the same: correct the template, or leave out `chat_template`"
        )

    def require_chat_template(self) -> None:
        """Refuses a tokenizer without a chat template, or whose template reads no such variable.

        Raises:
            BadInput: The tokenizer has no chat template, or one without a variable that is given.
        """
        if not self._tokenizer.chat_template:
            raise BadInput(
                "`chat_template`: the model's tokenizer has no chat template (a base model has "
                "none); leave the option out, or take an instruction-tuned model"
            )
        for name in self._template_settings:
            if not re.search(rf"\b{re.escape(name)}\b", str(self._tokenizer.chat_template)):
                raise BadInput(f"`chat_template_kwargs`: the template has no '{name}': correct it")

    def encode(self, text: str, *, special: bool | None = None) -> list[int]:
        """Tokenizes text, by default with the tokenizer's special tokens."""
        if special is None and has_bos_prefix(text, self._prefix_text):
            special = False
        options = {} if special is None else {"add_special_tokens": special}
        return list(self._tokenizer.encode(text, **options))

    def loglikelihood(self, context: str, continuation: str) -> Request:
        """Tokenizes a context and the continuation whose log-likelihood is requested.

        Raises:
            BadInput: The continuation does not fit the model's context, or nothing can stand
                before it.
        """
        if context == "":
            before, after = [], self.encode(continuation, special=False)
        else:
            trailing = len(context) - len(context.rstrip())
            if trailing:
                context, continuation = context[:-trailing], context[-trailing:] + continuation
            tokens = self.encode(context + continuation)
            before = list(self._context(context))
            after = tokens[len(before) :]
        if not before and after:
            if after[0] == self._prefix:
                before, after = after[:1], after[1:]
            else:
                before = [self._first()]
        if len(after) > self._max_length:
            raise BadInput(
                f"an answer is longer than the {self._max_length} tokens that the model reads: "
                "shorten it"
            )
        # the model reads all tokens but the last: max_length + 1 of them fit
        cut = max(0, len(before) + len(after) - (self._max_length + 1))
        return Request("loglikelihood", tuple(before[cut:]), tuple(after), cut=cut)

    def _first(self) -> int:
        """Returns the token that stands before a text without a context."""
        if self._prefix is None:
            raise BadInput(
                "a prompt is empty, and the tokenizer has no first or last token of a sequence "
                "that could stand before the answer: write a prompt"
            )
        return int(self._prefix)

    def _generated(self, task: str, context: str, options: dict[str, Any]) -> Request:
        normal = dict(normalize_gen_kwargs(options))
        if normal.get("do_sample"):
            raise TaskUnusable(
                f"task '{task}' samples its generations: broca decodes greedily, so that equal "
                "inputs give equal outputs; `gen_kwargs` do_sample=false asks for likeliest texts"
            )
        stop = handle_stop_sequences(normal.pop("until"), eos=self._eos)
        new_tokens, settings = int(normal.pop("max_gen_toks")), self._settings(task, normal)
        room = self._max_length - new_tokens
        if room < 1:
            raise TaskUnusable(
                f"task '{task}' generates up to {new_tokens} tokens, which leaves no room for a "
                f"prompt in the model's context of {self._max_length}"
            )
        # by another rule than in `encode`, as in lm-eval
        begun = has_bos_prefix(context, self._tokenizer.bos_token)
        special = {"add_special_tokens": False} if begun else {}
        tokens = list(self._tokenizer.encode(context, **special)) or [self._first()]
        cut = max(0, len(tokens) - room)
        tokens = tokens[cut:]
        if self._own_new_tokens is not None:
            new_tokens = min(self._own_new_tokens, max(1, self._max_length - len(tokens)))
        elif "max_length" in normal:
            new_tokens = int(normal["max_length"]) - len(tokens)
            if new_tokens < 1:
                raise TaskUnusable(
                    f"task '{task}' ends generations at {normal['max_length']} tokens with their "
                    f"prompt (max_length), and a prompt has {len(tokens)}: use `max_gen_toks`"
                )
        return Request(
            "generate_until",
            tuple(tokens),
            stop=tuple(str(text) for text in stop if text),
            max_new_tokens=1 if "" in stop else new_tokens,  # every text contains an empty one
            cut=cut,
            settings=json.dumps(settings, sort_keys=True) if settings else "",
        )

    def prompt_notes(self, task: str) -> list[str]:
        """Returns notes on what was done to the prompts of the task that was built last."""
        notes = []
        if self._left_out:
            notes.append(
                f"the chat template takes no system message: {task} is asked without it, as in "
                "lm-eval"
            )
        if self.encode("a")[-1:] != self.encode("a", special=False)[-1:]:
            notes.append(
                "the tokenizer ends every text with a token of its own, which stands between "
                f"prompts and answers of {task}, as in lm-eval: what it scores means little; save "
                "the tokenizer without that"
            )
        return notes

    def generation_notes(self, task: str, replaced: Mapping[str, Any]) -> list[str]:
        """Returns a note on the model's own settings of generations, if it has some.

        Args:
            task: Name of the task.
            replaced: The task's own settings.
        """
        settings = {name: self._own_settings[name] for name in self._own_settings.keys() - replaced}
        if self._own_new_tokens is not None:
            settings["max_new_tokens"] = self._own_new_tokens
        listed = ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))
        note = f"generations of {task} follow the model's generation_config, as in lm-eval: "
        return [note + listed] if settings else []

    def _settings(self, task: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings of a generation that change the most likely token.

        Args:
            task: Name of the task.
            options: The task's settings without length and stop strings.

        Raises:
            TaskUnusable: A setting is unknown to transformers, or not supported.
        """
        for name in options:
            if name not in _KNOWN or name == "eos_token_id":
                raise TaskUnusable(
                    f"task '{task}' has a setting of generations that broca does not take: "
                    f"{name}={options[name]!r}; remove it from generation_kwargs"
                )
        settings = _that_matter({**self._own_settings, **options})
        for name, value in settings.items():
            if name in REFUSED_SETTINGS:
                where = "generation_kwargs" if name in options else "the model's generation_config"
                raise TaskUnusable(
                    f"task '{task}' cannot be generated with {name}={value!r} (from {where}): "
                    f"broca decodes greedily, token by token; switch it off with `gen_kwargs` "
                    f"{name}={_OFF.get(name, 'null')}"
                )
        return settings


def require_context(config: Any, options: TaskOptions) -> None:
    """Refuses a maximum length that is more than a model is configured for.

    Raises:
        BadInput: The message gives the largest.
    """
    configured = resolve_max_length(config, default=0)
    if options.max_length is not None and 0 < configured < options.max_length:
        raise BadInput(
            f"`max_length` {options.max_length} is more than the {configured} tokens that the "
            f"model is configured for: use {configured} at most"
        )


def _that_matter(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that change greedy texts or are not supported, unless switched off."""
    effective = {}
    for name in (*APPLIED_SETTINGS, *REFUSED_SETTINGS):
        value = settings.get(name)
        if value is not None and value != _OFF.get(name, 0):
            # JSON has no keys of several tokens
            effective[name] = list(value.items()) if isinstance(value, dict) else value
    return effective


def _in_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a message whose content is a list with one part of text."""
    return {**message, "content": [{"type": "text", "text": message["content"]}]}
