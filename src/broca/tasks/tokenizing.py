"""Turns lm-eval's requests into tokens, by lm-eval's own rules.

The rules are those of lm-eval's `hf` model: spaces at the end of a context move to the
continuation, an empty context becomes the prefix token, and a prompt that does not fit the model's
context is truncated from the left.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from jinja2.exceptions import TemplateError
from lm_eval.api.instance import Instance
from lm_eval.models.utils import handle_stop_sequences, has_bos_prefix, normalize_gen_kwargs

from broca.errors import BadInput, TaskUnusable
from broca.tasks.items import Request
from broca.tasks.rolling import rolling_requests

_DEFAULT_NEW_TOKENS = 256
"""lm-eval's default for tasks without a limit."""


class RequestTokenizer:
    """Tokenizes requests for a model.

    Args:
        tokenizer: The model's tokenizer.
        max_length: Maximum number of input tokens of the model.
    """

    def __init__(self, tokenizer: Any, *, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        prefix = tokenizer.bos_token_id
        self._prefix = tokenizer.eos_token_id if prefix is None else prefix
        self._eos = (
            None
            if tokenizer.eos_token_id is None
            else tokenizer.decode(tokenizer.eos_token_id, skip_special_tokens=False)
        )
        self._last: tuple[str | None, list[int]] = (None, [])
        self._prefix_text = None if self._prefix is None else tokenizer.decode(self._prefix)

    @property
    def name(self) -> str:
        """Identifies its chat prompts: the source of the tokenizer and its template."""
        origin = str(self._tokenizer.name_or_path).replace("/", "__")
        return f"{origin}-{zlib.crc32(str(self._tokenizer.chat_template).encode()):08x}"

    @property
    def identity(self) -> tuple[int, int, str]:
        """Equal for tokenizers that make the same requests, while this object exists."""
        return id(self._tokenizer), self._max_length, self.name

    def requests(self, instance: Instance) -> tuple[Request, ...]:
        """Tokenizes an lm-eval request: one request, or several whose values sum (rolling).

        Returns:
            The requests; none if the text is empty.

        Raises:
            TaskUnusable: A kind of request, or a way of sampling, that is not supported.
        """
        kind, task = instance.request_type, instance.task_name or ""
        if kind == "generate_until":
            return (self._generation(task, *instance.args[:2]),)
        if kind == "loglikelihood":
            request = self.loglikelihood(*instance.args[:2])
            return (request,) if request.continuation else ()
        if kind == "loglikelihood_rolling":
            return self.rolling(instance.args[0])
        raise TaskUnusable(
            f"task '{task}' asks for '{kind}': broca runs loglikelihood, "
            "loglikelihood_rolling, multiple-choice and generate_until tasks"
        )

    def chat(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool = True
    ) -> str:
        """Writes messages in the tokenizer's chat template, as lm-eval's `hf` model does.

        If the template refuses a system message, it is left out.

        Raises:
            BadInput: The tokenizer has no chat template, or it refuses the messages.
        """
        self.require_chat_template()
        without_system = [message for message in messages if message["role"] != "system"]
        for accepted in (list(messages), without_system):
            try:
                return str(
                    self._tokenizer.apply_chat_template(
                        accepted,
                        tokenize=False,
                        add_generation_prompt=add_generation_prompt,
                        continue_final_message=not add_generation_prompt,
                    )
                )
            except TemplateError as error:
                refused = error
        raise BadInput(
            f"the chat template of the tokenizer refuses the prompt: {refused}; leave out "
            "`chat_template`"
        ) from refused

    def require_chat_template(self) -> None:
        """Refuses a tokenizer without a chat template.

        Raises:
            BadInput: The tokenizer has no chat template.
        """
        if not self._tokenizer.chat_template:
            raise BadInput(
                "`chat_template`: the model's tokenizer has no chat template (a base model has "
                "none); leave the option out, or take an instruction-tuned model"
            )

    def encode(self, text: str, *, special: bool | None = None) -> list[int]:
        """Tokenizes text, by default with the tokenizer's special tokens."""
        if special is None and has_bos_prefix(text, self._prefix_text):
            special = False
        options = {} if special is None else {"add_special_tokens": special}
        return list(self._tokenizer.encode(text, **options))

    def loglikelihood(self, context: str, continuation: str) -> Request:
        """Tokenizes a context and the continuation whose log-likelihood is requested."""
        if context == "":
            tokens = self.encode(continuation, special=False)
            if self._prefix is not None and tokens[:1] != [self._prefix]:
                before, after = [self._prefix], tokens
            else:
                before, after = tokens[:1], tokens[1:]
        else:
            trailing = len(context) - len(context.rstrip())
            if trailing:
                context, continuation = context[:-trailing], context[-trailing:] + continuation
            tokens = self.encode(context + continuation)
            before = self._context(context)
            after = tokens[len(before) :]
        # the model reads all tokens but the last: max_length + 1 of them fit
        cut = max(0, len(before) + len(after) - (self._max_length + 1))
        return Request("loglikelihood", tuple(before[cut:]), tuple(after), cut=cut)

    def _context(self, text: str) -> list[int]:
        """Tokenizes a context once for all choices that follow it."""
        last, tokens = self._last
        if text != last:
            tokens = self.encode(text)
            self._last = text, tokens
        return tokens

    def rolling(self, text: str) -> tuple[Request, ...]:
        """Tokenizes a text whose whole log-likelihood is requested; none for an empty text."""
        return rolling_requests(self.encode(text), prefix=self._prefix, max_length=self._max_length)

    def _generation(self, task: str, context: str, options: dict[str, Any]) -> Request:
        normal = dict(normalize_gen_kwargs(options, _DEFAULT_NEW_TOKENS))
        if normal.get("do_sample"):
            raise TaskUnusable(
                f"task '{task}' samples its generations (do_sample): broca decodes greedily, so "
                "that equal inputs give equal outputs"
            )
        stop = handle_stop_sequences(normal.get("until"), eos=self._eos)
        new_tokens = int(normal["max_gen_toks"])
        room = self._max_length - new_tokens
        if room < 1:
            raise TaskUnusable(
                f"task '{task}' generates up to {new_tokens} tokens, which leaves no room for a "
                f"prompt in the model's context of {self._max_length}"
            )
        tokens = self.encode(context)
        cut = max(0, len(tokens) - room)
        return Request(
            "generate_until",
            tuple(tokens[cut:]),
            stop=tuple(text for text in stop if text),
            max_new_tokens=new_tokens,
            cut=cut,
        )
