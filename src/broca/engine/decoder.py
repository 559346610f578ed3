"""Greedy decoding: finished generations leave the batch, and new rows enter it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, StoppingCriteriaList

from broca.engine import batches
from broca.engine.batches import Batch, Lane, Work
from broca.engine.reader import Store
from broca.errors import BadInput, first_line
from broca.models import ActiveGates
from broca.models.caches import is_plain, join, trim_left
from broca.tasks.items import Generation

LEAVE_SHARE = 1 / 8
"""Share of finished generations at which they are removed from a batch."""

REFILL_SHARE = 1 / 2
"""Share of the budget that must be free before new rows enter a running batch."""

RowT = TypeVar("RowT")


@dataclass(eq=False)
class Running(Generic[RowT]):
    """A batch that is being decoded.

    Attributes:
        rows: Its rows, whose prompts were read.
        gates: Their gates.
        attention: 1 for tokens and 0 for padding, `(rows, tokens)`.
        cache: Keys and values so far.
        newest: The last token of each row, or the logits of its next one.
        joins: Whether padding may be trimmed and rows may enter; the cache must be plain.
    """

    rows: list[RowT]
    gates: ActiveGates
    attention: Tensor
    cache: Any
    newest: Tensor
    joins: bool

    def keep(self, places: Sequence[int]) -> None:
        """Keeps some rows, and the positions at which one of them has a token."""
        index = torch.tensor(places, device=self.attention.device)
        self.cache.reorder_cache(index)
        self.gates.select(index)
        self.attention, self.newest = self.attention[index], self.newest[index]
        self.rows = [self.rows[place] for place in places]
        if self.joins:
            self.attention = trim_left(self.cache, self.attention)

    def take_in(self, other: Running[RowT]) -> None:
        """Appends the rows of another batch."""
        self.attention = join(self.cache, self.attention, other.cache, other.attention)
        self.newest = torch.cat([self.newest, other.newest])
        self.gates.extend(other.gates)
        self.rows += other.rows


class Decoder:
    """Runs the generations of a job on a lane.

    Args:
        lane: The model and its budget.
        masks: Gates of every mask, `(masks, components)`.
        store: Receives the answers when they are finished.
    """

    def __init__(self, lane: Lane, masks: Tensor, store: Store) -> None:
        self._lane, self._masks, self._store = lane, masks, store
        self._model, self._budget = lane.model, lane.budget
        self._processors = cache(self._processors_of)
        self._joins = self._entering = False
        self._ended: set[int] = set()

    @torch.inference_mode()
    def run(self, work: Sequence[Work]) -> None:
        """Runs all generations."""
        longest = max((row.length for row in work), default=1)
        self._joins = self._model.sharing(longest).joining  # of any two rows of this run
        together = [row for row in work if self._runs_with_others(row)]
        groups, alone = batches.prefix_groups(
            self._model, together, self._lane.options.share_prefixes
        )
        while groups:
            size, rows = batches.groups_that_fit(self._budget, groups)
            pack = groups[:size]
            with self._budget.attempt(min(rows, sum(len(group.members) for group in pack))):
                self._generate(batches.shared_batches(self._lane, self._masks, pack, rows=rows))
            # rows that do not fit memory run again in smaller batches
            left = [replace(group, members=self._left(group.members)) for group in pack]
            groups[:size] = [group for group in left if group.members]
        pending = batches.longest_first(alone)
        while pending:
            rows, waiting = self._budget.rows(pending[0].length), deque(pending)
            with self._budget.attempt(min(rows, len(pending))):
                self._generate(self._plain_batches(waiting), waiting)
            pending = self._left(pending)
        for decoding in work:
            if not self._runs_with_others(decoding):
                self._generate_alone(decoding)

    def _runs_with_others(self, decoding: Work) -> bool:
        sharing = self._model.sharing(decoding.length)
        return sharing.decoding and sharing.padding

    def _generate_alone(self, decoding: Work) -> None:
        """Generates a row with transformers' own loop: its cache follows the model's own rules."""
        stop, request = self._lane.stop, decoding.request

        def ended(tokens: Tensor, _scores: Any, **_: Any) -> Tensor:
            generated = tokens[0, len(decoding.tokens) :].tolist()
            over = stop.ended(generated, request.stop, request.max_new_tokens)
            return torch.tensor([over], device=tokens.device)

        tokens = torch.tensor([decoding.tokens], device=self._model.device)
        processors = None
        if request.settings:
            processors = self._processors(
                request.settings, len(request.context), request.max_new_tokens, tokens.device
            )
        with self._lane.gates(self._masks, [decoding]):
            longest, stopping = request.max_new_tokens, StoppingCriteriaList([ended])
            generated, logits = self._model.generated(
                tokens, longest=longest, stopping_criteria=stopping, logits_processor=processors
            )
        batches.require_finite(logits[:, None], [decoding.position] * len(logits))
        self._lane.tokens += len(decoding.tokens)
        self._keep(decoding, generated)

    def _left(self, work: Sequence[Work]) -> list[Work]:
        return [row for row in work if row.position not in self._ended]

    def _keep(self, decoding: Work, tokens: list[int]) -> None:
        """Stores a finished generation."""
        self._lane.tokens += len(tokens)
        self._ended.add(decoding.position)
        text = self._lane.stop.text(tokens, decoding.request.stop)
        self._store([(decoding.position, Generation(text, len(tokens), tokens[0]))])

    def _plain_batches(self, waiting: deque[Work]) -> Iterator[Batch]:
        """Yields batches of rows that it takes from those that wait."""
        while waiting:
            size = self._budget.rows(waiting[0].length)
            if self._entering:
                size = max(1, int(REFILL_SHARE * size))
            size = min(len(waiting), size)
            yield batches.plain_batch(
                self._lane, self._masks, [waiting.popleft() for _ in range(size)]
            )

    def _begin(self, batch: Batch) -> Running[Work]:
        """Reads the prompts of a batch."""
        with batch.gates:
            logits, cache = self._model.forward(
                batch.tokens, batch.attention, keep=1, cache=batch.cache, use_cache=True
            )
        self._lane.tokens += batch.read
        batches.require_finite(logits, [decoding.position for decoding in batch.work])
        newest = self._choose(logits[:, -1], batch.work, {})
        joins = self._joins and is_plain(cache)
        return Running([*batch.work], batch.gates, batch.attention, cache, newest, joins)

    def _generate(self, pending: Iterator[Batch], waiting: Sized = ()) -> None:
        """Decodes rows until every one is finished.

        Args:
            pending: Batches of the rows, made when there is room for them.
            waiting: The rows that may enter a running batch.
        """
        source = map(self._begin, pending)
        generated: dict[int, list[int]] = {}
        running = next(source, None)
        while running is not None:
            self._note_newest(running, generated)
            alive = self._alive(running)
            if not alive:
                running = next(source, None)
                continue
            if self._lane.options.compact:
                if len(running.rows) - len(alive) >= LEAVE_SHARE * len(running.rows):
                    running.keep(alive)
                if waiting and self._has_room(running):
                    self._entering = True
                    new = next(source)
                    self._entering = False
                    self._note_newest(new, generated)
                    if alive := self._alive(new):
                        new.keep(alive)
                        running.take_in(new)
            running.attention = nn.functional.pad(running.attention, (0, 1))
            running.attention[self._alive(running), -1] = 1  # ended rows keep their positions
            with running.gates:
                logits, running.cache = self._model.forward(
                    running.newest[:, None], running.attention, keep=1, cache=running.cache,
                    use_cache=True,
                )  # fmt: skip
            batches.require_finite(logits, [decoding.position for decoding in running.rows])
            running.newest = self._choose(logits[:, -1], running.rows, generated)

    def _choose(
        self, logits: Tensor, work: Sequence[Work], generated: Mapping[int, list[int]]
    ) -> Tensor:
        """Returns the most likely token of each row after its request's settings, `(rows,)`.

        Args:
            logits: Logits of the next token, `(rows, vocabulary)`.
            work: Work of each row.
            generated: Tokens so far, by the position of the request.
        """
        rows_by_key: dict[tuple[str, int, int, int], list[int]] = {}
        for row, decoding in enumerate(work):
            request = decoding.request
            if request.settings:
                new = len(generated.get(decoding.position, ()))
                key = request.settings, len(request.context), request.max_new_tokens, new
                rows_by_key.setdefault(key, []).append(row)
        if rows_by_key:
            logits = logits.to(torch.float32, copy=True)  # as `generate` does
        for (settings, prompt, new_tokens, _), rows in rows_by_key.items():
            read = [[*work[row].tokens, *generated.get(work[row].position, ())] for row in rows]
            tokens = torch.tensor(read, device=logits.device)
            processors = self._processors(settings, prompt, new_tokens, logits.device)
            logits[rows] = processors(tokens, logits[rows])
        return logits.argmax(-1)

    def _processors_of(
        self, settings: str, prompt: int, new_tokens: int, device: torch.device
    ) -> Any:
        """Returns the logits processors that `generate` builds for a prompt of so many tokens.

        Raises:
            BadInput: transformers does not accept the settings.
        """
        model = self._model.model
        defaults = getattr(model, "generation_config", None)
        try:
            config = GenerationConfig(
                **json.loads(settings),
                eos_token_id=getattr(defaults, "eos_token_id", None),
                max_length=prompt + new_tokens,
            )
            model._prepare_special_tokens(config, True, device)
            return model._get_logits_processor(
                generation_config=config, input_ids_seq_length=prompt, device=device
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise BadInput(
                f"the settings of generations {settings} are not accepted by transformers: "
                f"{first_line(error)}; correct generation_kwargs, `gen_kwargs` or the model's "
                "generation_config"
            ) from error

    def _alive(self, running: Running[Work]) -> list[int]:
        """Returns the places of the rows that still generate."""
        return [at for at, row in enumerate(running.rows) if row.position not in self._ended]

    def _note_newest(self, running: Running[Work], generated: dict[int, list[int]]) -> None:
        """Appends the newest token of each running row, and finishes rows that it ends."""
        newest = running.newest.tolist()
        for at in self._alive(running):
            decoding, request = running.rows[at], running.rows[at].request
            tokens = generated.setdefault(decoding.position, [])
            tokens.append(newest[at])
            if self._lane.stop.ended(tokens, request.stop, request.max_new_tokens):
                self._keep(decoding, tokens)

    def _has_room(self, running: Running[Work]) -> bool:
        """Whether enough of the budget is free for new rows, and the cache can be extended."""
        used = sum(decoding.length for decoding in running.rows)
        return running.joins and used <= (1 - REFILL_SHARE) * self._budget.tokens
