"""Generates answers token by token, a question at a time, each of its rows under its own gates."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

import torch
from torch import Tensor

from broca.engine.decoder import Running
from broca.engine.stop_rule import eos_tokens
from broca.errors import BadInput
from broca.models import GatedModel

LIKELY = 6
"""Number of likeliest next tokens that are sent with every token."""

TOKENS = 2**15
"""Maximum number of tokens of all rows of a question."""

WAITING = 16
"""Maximum number of questions that wait."""

_UNFINISHED = "\ufffd"
"""Replacement character of a tokenizer for an incomplete character."""

Event = dict[str, Any]


@dataclass(eq=False)
class Stream:
    """A question, and the events of its answers in their order.

    Attributes:
        prompt: Tokens of the prompt.
        gates: Gates of every row, `(rows, components)`.
        longest: Maximum number of tokens of an answer.
        cancelled: Whether the reader is gone.
    """

    prompt: tuple[int, ...]
    gates: Tensor
    longest: int
    events: Queue[Event | None] = field(default_factory=Queue)
    cancelled: bool = False

    def __iter__(self) -> Iterator[Event]:
        """Iterates over events until every row is finished.

        An event is a token of a row (`row`, `token`, `text`, and `likely`: texts with
        probabilities, the generated one first), the end of a row (`row`, and the reason `end`), or
        an `error`.
        """
        return iter(self.events.get, None)


@dataclass(eq=False)
class _Row:
    number: int
    tokens: list[int] = field(default_factory=list)
    text: str = ""


class Generator:
    """Generates greedily on its own thread; a question waits for those before it.

    Args:
        model: The model; a copy of its modules answers.
    """

    def __init__(self, model: GatedModel) -> None:
        self._model = model.copy()
        self._stop = frozenset(eos_tokens(model))
        self._questions: Queue[Stream | None] = Queue()
        self._lock, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name="broca generator", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of questions that wait."""
        return self._questions.qsize()

    def ask(self, prompt: Sequence[int], gates: Sequence[Tensor], *, longest: int = 64) -> Stream:
        """Continues a prompt under several gates, in one batch.

        Args:
            prompt: Tokens of the prompt, at least one.
            gates: Gates of every row, `(components,)`.
            longest: Maximum number of tokens of a continuation.

        Raises:
            BadInput: The rows exceed `TOKENS`, too many questions wait, or the page is closing.
        """
        if len(gates) * (len(prompt) + longest) > TOKENS:
            raise BadInput(
                f"the prompt has {len(prompt):,} tokens, and the page takes at most "
                f"{TOKENS // len(gates) - longest:,}"
            )
        if self.waiting >= WAITING:
            raise BadInput("the page is busy with other questions: ask again in a moment")
        stream = Stream(tuple(prompt), torch.stack(tuple(gates)), longest)
        with self._lock:  # nothing is put behind the end of the queue
            if self._closed:
                raise BadInput("the page is closing")
            self._questions.put(stream)
        return stream

    def close(self) -> None:
        """Stops the thread after its current token."""
        with self._lock:
            self._closed = True
            self._questions.put(None)
        self._thread.join()

    def _work(self) -> None:
        with self._model.in_use(), torch.inference_mode():
            while (stream := self._questions.get()) is not None:
                try:
                    self._answer(stream)
                except Exception as error:  # noqa: BLE001  # it ends the answers, not the thread
                    text = f"{type(error).__name__}: the model cannot answer this"
                    stream.events.put({"row": 0, "error": text})
                stream.events.put(None)

    def _answer(self, stream: Stream) -> None:
        """Reads the prompt, then sends the next token of every row that is not finished."""
        tokens = torch.tensor([stream.prompt] * len(stream.gates), device=self._model.device)
        gates, attention = self._model.gates(stream.gates), torch.ones_like(tokens)
        with gates:
            logits, cache = self._model.forward(tokens, attention, keep=1, use_cache=True)
        rows = [_Row(number) for number in range(len(stream.gates))]
        batch = Running(rows, gates, attention, cache, logits[:, -1], joins=False)
        while alive := self._sent(batch, stream):
            if len(alive) < len(batch.rows):
                batch.keep(alive)
            newest = torch.tensor([[row.tokens[-1]] for row in batch.rows], device=tokens.device)
            batch.attention = torch.nn.functional.pad(batch.attention, (0, 1), value=1)
            with gates:
                logits, batch.cache = self._model.forward(
                    newest, batch.attention, keep=1, cache=batch.cache, use_cache=True
                )
            batch.newest = logits[:, -1]

    def _sent(self, batch: Running[_Row], stream: Stream) -> list[int]:
        """Sends the most likely token of every row; returns the places of those that go on."""
        decode = self._model.tokenizer.decode
        shares = batch.newest.float().softmax(-1)
        values, tokens = shares.topk(min(LIKELY, shares.shape[-1]))
        gone = "cancelled" if stream.cancelled else "closed" if self._closed else ""
        alive = []
        for place, row in enumerate(batch.rows):
            token = int(tokens[place, 0])
            end = gone or ("stop" if token in self._stop else "")
            if not end:
                row.tokens.append(token)
                text = self._model.text_after([*stream.prompt], row.tokens)
                new = "" if text.endswith(_UNFINISHED) else text[len(row.text) :]
                row.text += new
                likely = [
                    [str(decode([int(candidate)])), round(float(share), 5)]
                    for candidate, share in zip(tokens[place], values[place], strict=True)
                ]
                shown = {"row": row.number, "token": token, "text": new, "likely": likely}
                stream.events.put(shown)
                end = "length" if len(row.tokens) >= stream.longest else ""
            if end:
                stream.events.put({"row": row.number, "end": end})
            else:
                alive.append(place)
        return alive
