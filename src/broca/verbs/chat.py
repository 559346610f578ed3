"""`chat`: a conversation with a model, intact and without some components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers.generation.streamers import TextStreamer

from broca.errors import BadInput, nearest
from broca.models import GatedModel, greedy
from broca.options import APPLIED_SETTINGS, ChatOptions, TaskOptions, verb
from broca.options.running import PromptsRun
from broca.published import published_heads
from broca.runs.folder import options_of_run
from broca.runs.progress import Stages
from broca.runs.session import is_run, model_and_heads, model_in_use, require_weights_of
from broca.tasks import RequestTokenizer

INTACT, ABLATED = "intact", "ablated"
"""The two voices."""

COMMANDS = {
    "off": "NAMES: ablate these too, such as L0H5 or L0H5+L1H2; without names those of the start",
    "on": "NAMES: leave these intact again; without names all of them",
    "scale": "X: the factor of the ablated components' outputs",
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


@verb(ChatOptions)
def chat(options: ChatOptions) -> tuple[Exchange, ...]:
    """Lets a model answer line by line, intact and with some components ablated or scaled.

    Lines that begin with a slash are commands; `/help` lists them. Each voice has its own history.
    An invalid command gets an answer and changes nothing.

    Returns:
        The prompts and their answers.

    Raises:
        BrocaError: The model or a component does not exist.
    """
    write = options.write or (lambda voice, text: None)
    target, heads, measured = model_and_heads(options.target, options.heads)
    model_options = options.model_options
    run = is_run(options.target) or (options.heads is None and isinstance(options.target, str))
    if run:
        given = PromptsRun(model_options=model_options)
        model_options = options_of_run(options.target, given, with_journal=False).model_options
    with model_in_use(target, model_options, Stages(options.on_progress)) as model:
        if model.tokenizer is None:
            raise BadInput(f"model '{model.name}' has no tokenizer: a conversation needs one")
        if options.max_new_tokens >= model.max_length:
            raise BadInput(
                f"`max_new_tokens` {options.max_new_tokens:,} leaves no room for a prompt: the "
                f"model reads {model.max_length:,} tokens; lower it"
            )
        require_weights_of(measured, model)
        parts = model.gated_parts(published_heads(heads, model), options.scale)
        names = tuple(component.name for component in parts.named)
        conversation = _Conversation(model, options, names)
        write("", f"{conversation.state()}; /help lists the commands, /quit ends")
        for line in map(str, options.lines):
            if line.startswith("/") and line[1:].split()[:1] == ["quit"]:
                break
            try:
                if line.startswith("/"):
                    write("", conversation.follow(line[1:].strip()))
                elif line.strip():
                    conversation.answer(line, write)
            except BadInput as error:
                write("", str(error))
        return tuple(conversation.exchanges)


class _Conversation:
    """What is ablated now, who answers, and what was said, which each voice remembers as its own.

    If the tokenizer has a chat template, it formats the messages; otherwise the model continues the
    plain text of the conversation.
    """

    def __init__(self, model: GatedModel, options: ChatOptions, names: tuple[str, ...]) -> None:
        self.exchanges: list[Exchange] = []
        self._model, self._options = model, options
        self._first = self._components = names
        self._scale = options.scale
        variables = options.chat_template_kwargs
        self._template = TaskOptions(chat_template=True, chat_template_kwargs=variables)
        if variables:
            RequestTokenizer.of(model, self._template).require_chat_template()

    def state(self) -> str:
        """Describes the ablated components."""
        if not self._components:
            return "nothing is ablated"
        how = "ablated" if self._scale == 0 else f"scaled by {self._scale:g}"
        return f"{'+'.join(self._components)} {how}"

    def follow(self, words: str) -> str:
        """Executes a command and describes the new state.

        Raises:
            BadInput: The command is unknown or invalid, and was not executed.
        """
        name, _, argument = words.partition(" ")
        if name not in COMMANDS:
            raise BadInput(f"/{name} is unknown{nearest(name, COMMANDS)}; /help lists the commands")
        if name == "help":
            return "\n".join(f"/{word} {text}" for word, text in COMMANDS.items())
        if name == "reset":
            self.exchanges.clear()
        elif name == "scale":
            try:
                scale = float(argument)
            except ValueError:
                raise BadInput(f"/scale needs a number, not '{argument}'") from None
            self._model.require_scale(scale)
            self._scale = scale
        else:
            named = self._model.gated_parts("+".join(argument.replace(",", " ").split())).named
            names = [component.name for component in named]
            if name == "on":
                left = (each for each in self._components if names and each not in names)
                self._components = tuple(left)
            elif names:
                self._components = tuple(dict.fromkeys((*self._components, *names)))
            else:
                self._components = self._first
        return self.state()

    def answer(self, prompt: str, write: Callable[[str, str], None]) -> None:
        """Answers a prompt in every voice, piece by piece.

        Raises:
            BadInput: The prompt is too long, or no text.
        """
        if any("\ud800" <= letter <= "\udfff" for letter in prompt):
            raise BadInput("this line has bytes that are not UTF-8: write it in UTF-8")
        answers = {}
        prompts = {voice: self._tokens(prompt, voice) for voice in (INTACT, ABLATED)}
        for voice, tokens in prompts.items():
            write(voice, "")  # its turn, even if the answer is empty
            with self._model.ablated(self._components if voice == ABLATED else (), self._scale):
                answers[voice] = self._generated(tokens, partial(write, voice))
        self.exchanges.append(Exchange(prompt, self._components, self._scale, answers))

    def _tokens(self, prompt: str, voice: str) -> list[int]:
        """Returns the tokens of a voice: the prompt after as much of its history as fits."""
        room = self._model.max_length - self._options.max_new_tokens
        for first in range(len(self.exchanges) + 1):
            tokens = self._after(self.exchanges[first:], prompt, voice)
            if len(tokens) <= room:
                return tokens
        raise BadInput(
            f"this line has {len(tokens):,} tokens with what stands before it, and the model has "
            f"room for {room:,}: write less, or lower `max_new_tokens`"
        )

    def _after(self, past: Sequence[Exchange], prompt: str, voice: str) -> list[int]:
        """Returns the tokens of some exchanges of a voice and of a prompt."""
        tokenizer, system = self._model.tokenizer, self._options.system_prompt
        history = [(one.prompt, one.answers.get(voice, "")) for one in past]
        if getattr(tokenizer, "chat_template", None):
            messages = [{"role": "system", "content": system}] if system else []
            for question, answer in history:
                messages.append({"role": "user", "content": question})
                messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": prompt})
            text = RequestTokenizer.of(self._model, self._template).chat(messages)
            return list(tokenizer.encode(text, add_special_tokens=False))
        lines = [system] if system else []
        lines += [question + answer for question, answer in history]
        return list(tokenizer.encode("\n".join([*lines, prompt])))

    def _generated(self, tokens: list[int], write: Callable[[str], None]) -> str:
        """Generates with transformers' own loop, which obeys the model's `generation_config`."""
        model, tokenizer = self._model.model, self._model.tokenizer
        streamer = _Pieces(tokenizer, write)
        padding = tokenizer.pad_token_id
        input_ids = torch.tensor([tokens], device=self._model.device)
        try:
            with torch.no_grad(), greedy(model, keep=(*APPLIED_SETTINGS, "stop_strings")):
                output = model.generate(
                    input_ids=input_ids, attention_mask=torch.ones_like(input_ids),
                    max_new_tokens=self._options.max_new_tokens,
                    pad_token_id=tokenizer.eos_token_id if padding is None else padding,
                    tokenizer=tokenizer, streamer=streamer,
                )  # fmt: skip
        except KeyboardInterrupt:  # ends the answer, not the conversation
            return "".join(streamer.pieces)
        return self._model.text_after(tokens, output[0, len(tokens) :].tolist())


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
