"""Conversations with a model in two voices: intact, and with some components scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from transformers.generation.streamers import TextStreamer

from broca.errors import BadInput, nearest
from broca.models import GatedModel, greedy
from broca.options import APPLIED_SETTINGS
from broca.tasks import RequestTokenizer

INTACT, ABLATED = "intact", "ablated"
"""The two voices."""

COMMANDS = {
    "off": "NAMES: ablate these too, such as L0H5 or L0H5+L1H2",
    "on": "NAMES: leave these intact again; without names all of them",
    "scale": "X: the factor of the ablated components' outputs",
    "sets": "list the sets that have names",
    "use": "NAME: ablate this set instead",
    "both": "answer intact and ablated",
    "one": "answer ablated alone",
    "reset": "forget what was said",
    "help": "list the commands",
    "quit": "end",
}
"""The commands that follow a slash, with their descriptions."""


@dataclass(frozen=True)
class Exchange:
    """A prompt and the answers of the voices.

    Attributes:
        prompt: The prompt.
        components: The scaled components of the ablated voice.
        scale: Factor of their outputs.
        answers: The answers by voice.
    """

    prompt: str
    components: tuple[str, ...]
    scale: float
    answers: dict[str, str]


@dataclass(eq=False)
class Conversation:
    """A conversation in two voices, each with its own history.

    If the tokenizer has a chat template, it formats the messages; otherwise the model continues the
    plain text of the conversation.

    Attributes:
        model: The model.
        components: The scaled components of the ablated voice.
        scale: Factor of their outputs; 0 ablates.
        sets: Sets of components by name, for `/use`.
        system_prompt: Text before everything else.
        max_new_tokens: Maximum number of tokens of an answer.
        voices: The voices that answer.
        exchanges: The exchanges so far.
        ended: Whether the user has ended the conversation.
        template_settings: Variables of the chat template.
    """

    model: GatedModel
    components: tuple[str, ...] = ()
    scale: float = 0.0
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    system_prompt: str = ""
    max_new_tokens: int = 200
    voices: tuple[str, ...] = (INTACT, ABLATED)
    exchanges: list[Exchange] = field(default_factory=list)
    ended: bool = False
    template_settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model.tokenizer is None:
            raise BadInput(f"model '{self.model.name}' has no tokenizer: a conversation needs one")
        if self.max_new_tokens < 1:
            raise BadInput(f"`max_new_tokens` must be at least 1, not {self.max_new_tokens}")
        self.model.gated_parts(self.components, self.scale)  # refuses unknown components

    def hear(self, line: str, write: Callable[[str, str], None]) -> None:
        """Handles a line of the user: a command after a slash, or a prompt.

        Args:
            line: The line.
            write: Receives pieces of answers as they are generated, each with its voice; the
                conversation's own lines have an empty voice.

        Raises:
            BadInput: A command is unknown or invalid, and was not executed.
        """
        if line.startswith("/"):
            write("", self._follow(line[1:].strip()))
        elif line.strip():
            self._answer(line, write)

    def _follow(self, words: str) -> str:
        """Executes a command and describes the new state."""
        name, _, argument = words.partition(" ")
        if name not in COMMANDS:
            raise BadInput(f"/{name} is unknown{nearest(name, COMMANDS)}; /help lists the commands")
        if name == "help":
            return "\n".join(f"/{word} {text}" for word, text in COMMANDS.items())
        if name == "quit":
            self.ended = True
            return ""
        if name == "sets":
            listed = [f"{word}: {'+'.join(names)}" for word, names in self.sets.items()]
            return "\n".join(listed) or "no set has a name here"
        if name == "reset":
            self.exchanges.clear()
        elif name == "both":
            self.voices = (INTACT, ABLATED)
        elif name == "one":
            self.voices = (ABLATED,)
        elif name == "scale":
            self.scale = _number(argument)
        else:
            self.components = self._changed(name, argument.strip())
        return self.state()

    def _changed(self, name: str, argument: str) -> tuple[str, ...]:
        """Returns the components after `/off`, `/on` or `/use`."""
        if name == "use":
            if argument not in self.sets:
                raise BadInput(
                    f"no set is called '{argument}'{nearest(argument, self.sets)}; /sets lists them"
                )
            return self.sets[argument]
        if name == "on" and not argument:
            return ()
        named = self.model.gated_parts(argument.replace(",", "+").replace(" ", "+")).named
        if not named:
            raise BadInput(f"/{name} needs names of components, such as L0H5")
        names = [component.name for component in named]
        if name == "on":
            return tuple(component for component in self.components if component not in names)
        return tuple(dict.fromkeys((*self.components, *names)))

    def state(self) -> str:
        """Describes the ablated components."""
        if not self.components:
            return "nothing is ablated"
        how = "ablated" if self.scale == 0 else f"scaled by {self.scale:g}"
        return f"{'+'.join(self.components)} {how}"

    def _answer(self, prompt: str, write: Callable[[str, str], None]) -> None:
        answers = {}
        for voice in self.voices:
            write(voice, "")  # its turn, even if the answer is empty
            tokens = self._tokens(prompt, voice)
            ablating = (
                self.model.ablated(self.components, self.scale)
                if voice == ABLATED and self.components
                else nullcontext()
            )
            with self.model.in_use(), ablating:
                answers[voice] = self._generated(tokens, partial(write, voice))
        self.exchanges.append(Exchange(prompt, self.components, self.scale, answers))

    def _tokens(self, prompt: str, voice: str) -> list[int]:
        """Returns the tokens of a voice: its history and the prompt, as many as fit."""
        tokenizer = self.model.tokenizer
        history = [(past.prompt, past.answers.get(voice, "")) for past in self.exchanges]
        if getattr(tokenizer, "chat_template", None):
            messages = [{"role": "system", "content": self.system_prompt}] * bool(
                self.system_prompt
            )
            for question, answer in history:
                messages += [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": answer},
                ]
            messages.append({"role": "user", "content": prompt})
            text = RequestTokenizer(
                tokenizer,
                max_length=self.model.max_length,
                template_settings=self.template_settings,
            ).chat(messages)
            tokens = list(tokenizer.encode(text, add_special_tokens=False))
        else:
            lines = [self.system_prompt] * bool(self.system_prompt)
            lines += [question + answer for question, answer in history]
            tokens = list(tokenizer.encode("\n".join([*lines, prompt])))
        room = max(1, self.model.max_length - self.max_new_tokens)
        return tokens[-room:]

    def _generated(self, tokens: list[int], write: Callable[[str], None]) -> str:
        model, tokenizer = self.model.model, self.model.tokenizer
        streamer = _Pieces(tokenizer, write)
        padding = tokenizer.pad_token_id
        input_ids = torch.tensor([tokens], device=self.model.device)
        try:
            with torch.no_grad(), greedy(model, keep=(*APPLIED_SETTINGS, "stop_strings")):
                output = model.generate(
                    input_ids=input_ids,
                    attention_mask=torch.ones_like(input_ids),
                    max_new_tokens=self.max_new_tokens,
                    pad_token_id=tokenizer.eos_token_id if padding is None else padding,
                    tokenizer=tokenizer,
                    streamer=streamer,
                )
        except KeyboardInterrupt:  # ends the answer, not the conversation
            return "".join(streamer.pieces)
        return str(tokenizer.decode(output[0, len(tokens) :], skip_special_tokens=True))


class _Pieces(TextStreamer):  # type: ignore[misc]  # transformers has no types
    """Passes text on as it is generated."""

    def __init__(self, tokenizer: Any, write: Callable[[str], None]) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self._write = write
        self.pieces: list[str] = []

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        if text:
            self.pieces.append(text)
            self._write(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadInput(f"/scale needs a number, not '{text}'")
    return number
