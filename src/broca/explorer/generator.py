"""Generates answers token by token, for all tabs in one batch, each row under its own gates."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

import torch
from torch import Tensor

from broca.engine.decoder import Running
from broca.engine.stop_rule import eos_tokens
from broca.errors import BadInput
from broca.models import GatedModel
from broca.models.caches import is_plain, left_padded

LIKELY = 6
"""Number of likeliest next tokens that are sent with every token."""

TOKENS = 2**15
"""Maximum number of tokens of all rows, as if each were as long as the longest of them."""

_UNFINISHED = "\ufffd"
"""Replacement character of a tokenizer for an incomplete character."""

Event = dict[str, Any]


@dataclass(eq=False)
class Stream:
    """The events of a question, in their order.

    Attributes:
        rows: Number of its rows that are not finished.
        length: Maximum number of tokens of a row.
        cancelled: Whether the reader is gone, so that its rows leave the batch.
    """

    rows: int
    length: int
    events: Queue[Event | None] = field(default_factory=Queue)
    cancelled: bool = False

    def __iter__(self) -> Iterator[Event]:
        """Yields events until every row is finished.

        An event is a token of a row (`row`, `text`, and `likely`: tokens with probabilities, the
        generated one first), the end of a row (`row`, and the reason `end`), or an `error`.
        """
        while (event := self.events.get()) is not None:
            yield event


@dataclass(eq=False)
class _Row:
    """A row of the batch."""

    stream: Stream
    number: int
    prompt: tuple[int, ...]
    gates: Tensor
    longest: int
    tokens: list[int] = field(default_factory=list)
    text: str = ""

    def send(self, **event: Any) -> None:
        self.stream.events.put({"row": self.number, **event})

    def end(self, why: str) -> None:
        self.send(end=why)
        self.stream.rows -= 1
        if not self.stream.rows:
            self.stream.events.put(None)


class Generator:
    """Generates greedily on its own thread; rows of new questions enter the running batch.

    If the model's cache cannot be extended, new questions wait for the end of the batch.

    Args:
        model: The model, which nothing else may run meanwhile.
    """

    def __init__(self, model: GatedModel) -> None:
        self._model = model
        self._stop = frozenset(eos_tokens(model))
        self._new: Queue[list[_Row] | None] = Queue()
        self._held: list[_Row] | None = None
        self._asked: list[Stream] = []
        self._asking = threading.Lock()
        self.running = 0
        """Current number of rows of the batch."""
        self.largest = 0
        """Maximum number of rows of a batch so far."""
        self._thread = threading.Thread(target=self._work, name="broca generator", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of questions that are not in the batch yet."""
        return self._new.qsize()

    def ask(self, prompt: Sequence[int], gates: Sequence[Tensor], *, longest: int = 64) -> Stream:
        """Continues a prompt under several gates, in one batch.

        Args:
            prompt: Tokens of the prompt, at least one.
            gates: Gates of every row, `(components,)`.
            longest: Maximum number of tokens of a continuation.

        Raises:
            BadInput: The rows exceed `TOKENS`, alone or with those that are not finished.
        """
        stream = Stream(len(gates), len(prompt) + longest)
        with self._asking:
            self._asked = [asked for asked in self._asked if asked.rows]
            together = [*self._asked, stream]
            width = max(asked.length for asked in together)
            if sum(asked.rows for asked in together) * width > TOKENS:
                if not self._asked:
                    raise BadInput(
                        f"the prompt has {len(prompt):,} tokens, and the page takes at most "
                        f"{TOKENS // len(gates) - longest:,}"
                    )
                raise BadInput("the page is busy with other questions: ask again in a moment")
            self._asked = together
        self._new.put([
            _Row(stream, number, tuple(prompt), values, longest)
            for number, values in enumerate(gates)
        ])  # fmt: skip
        return stream

    def close(self) -> None:
        """Stops the thread after its current token."""
        self._new.put(None)
        self._thread.join(timeout=30)

    def _work(self) -> None:
        batch: Running[_Row] | None = None
        open_for_work = True
        with self._model.in_use(), torch.inference_mode():
            while open_for_work:
                try:
                    open_for_work, batch = self._admit(batch)
                    if batch is not None:
                        batch = self._step(batch)
                except Exception as error:  # noqa: BLE001  # it ends the answers, not the thread
                    for row in batch.rows if batch is not None else ():
                        row.send(error=f"{type(error).__name__}: the model cannot answer this")
                        row.end("error")
                    batch = None
                self.running = len(batch.rows) if batch is not None else 0

    def _admit(self, batch: Running[_Row] | None) -> tuple[bool, Running[_Row] | None]:
        """Admits new questions; waits if there is nothing to do."""
        if batch is not None and not batch.joins:
            return True, batch
        try:
            rows = self._held or self._new.get(block=batch is None)
        except Empty:
            return True, batch
        if rows is None:
            for row in batch.rows if batch is not None else ():
                row.end("closed")
            return False, None
        self._held = None
        if batch is not None and not self._joins(rows):
            self._held = rows  # after this batch
            return True, batch
        for row in rows:
            if row.stream.cancelled:
                row.end("cancelled")
        rows = [row for row in rows if not row.stream.cancelled]
        if not rows:
            return True, batch
        try:
            started = self._prefill(rows)
        except Exception:  # noqa: BLE001  # these rows say so; the batch goes on
            for row in rows:
                row.send(error="the model cannot read this prompt: is it too long?")
                row.end("error")
            return True, batch
        if batch is None:
            batch = started
        else:
            batch.take_in(started)
        self.running = len(batch.rows)
        self.largest = max(self.largest, self.running)
        return True, batch

    def _joins(self, rows: list[_Row]) -> bool:
        """Whether rows may enter a running batch."""
        return self._model.sharing(max(len(row.prompt) + row.longest for row in rows)).joining

    def _prefill(self, rows: list[_Row]) -> Running[_Row]:
        tokens, attention = left_padded([row.prompt for row in rows], device=self._model.device)
        gates = self._model.gates(torch.stack([row.gates for row in rows]))
        with gates:
            logits, cache = self._model.forward(tokens, attention, keep=1, use_cache=True)
        joins = self._joins(rows) and is_plain(cache)
        return Running(rows, gates, attention, cache, logits[:, -1], joins)

    def _step(self, batch: Running[_Row]) -> Running[_Row] | None:
        """Sends the next token of every row, removes finished rows, and runs the others."""
        probabilities = batch.newest.float().softmax(-1)
        values, tokens = probabilities.topk(min(LIKELY, probabilities.shape[-1]))
        newest = tokens[:, 0]
        alive = []
        for place, row in enumerate(batch.rows):
            if row.stream.cancelled:
                row.end("cancelled")
                continue
            token = int(newest[place])
            if token in self._stop:
                row.end("stop")
                continue
            row.tokens.append(token)
            text = str(self._model.tokenizer.decode(row.tokens, skip_special_tokens=True))
            complete = not text.endswith(_UNFINISHED)
            new = text[len(row.text) :] if complete else ""
            row.text = text if complete else row.text
            row.send(text=new, likely=[
                [str(self._model.tokenizer.decode([int(candidate)])), round(float(share), 5)]
                for candidate, share in zip(tokens[place], values[place], strict=True)
            ])  # fmt: skip
            if len(row.tokens) >= row.longest:
                row.end("length")
            else:
                alive.append(place)
        if not alive:
            return None
        newest = newest[torch.tensor(alive, device=newest.device)]
        if len(alive) < len(batch.rows):
            batch.keep(alive)
        batch.newest = batch.step(self._model, newest)[:, -1]
        return batch
