"""Greedy decoding: finished generations leave the batch, and new rows enter it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from broca.engine.batches import Batch, plain_batch, shared_batches
from broca.engine.budget import Budget
from broca.engine.checks import require_finite
from broca.engine.prefixes import PrefixGroup, groups_that_fit, prefix_groups
from broca.engine.stopping import StopRule
from broca.engine.work import Decoding, Masking, Store, longest_first
from broca.errors import BadInput, first_line
from broca.models import ActiveGates, GatedModel
from broca.models.caches import is_plain, join, select_rows, trim_left
from broca.options import EngineOptions
from broca.tasks.items import Generation

LEAVE_SHARE = 1 / 8
"""Share of finished generations at which they are removed from a batch."""

REFILL_SHARE = 1 / 2
"""Share of the budget that must be free before new rows enter a running batch."""


Keep = Callable[[Decoding, list[int]], None]
"""Receives a finished generation and its tokens."""


class _Running:
    """A batch that is being decoded.

    Attributes:
        work: Work of each row.
        attention: Attention mask, `(rows, tokens so far)`.
        cache: Keys and values so far.
        gates: The rows' gates.
        newest: Last generated token of each row, `(rows,)`.
        alive: Whether each row still generates.
        joins: Whether padding may be trimmed and rows may enter.
    """

    def __init__(self, batch: Batch[Decoding], newest: Tensor, cache: Any, *, joins: bool) -> None:
        self.joins = joins and is_plain(cache)
        self.work = list(batch.work)
        self.attention = batch.attention
        self.cache = cache
        self.gates: ActiveGates = batch.gates
        self.newest = newest
        self.alive = [True] * len(batch.work)

    def keep(self, rows: list[int]) -> None:
        """Keeps `rows` of the batch, and the positions at which one of them has a token."""
        index = torch.tensor(rows, device=self.attention.device)
        select_rows(self.cache, index)
        self.gates.select(index)
        self.attention, self.newest = self.attention[index], self.newest[index]
        self.work = [self.work[row] for row in rows]
        self.alive = [True] * len(rows)
        if self.joins:
            self.attention = trim_left(self.cache, self.attention)

    def take_in(self, other: _Running, masking: Masking) -> None:
        """Appends the rows of another batch."""
        self.attention = join(self.cache, self.attention, other.cache, other.attention)
        self.newest = torch.cat([self.newest, other.newest])
        self.gates.extend(*masking.of(other.work))
        self.work += other.work
        self.alive += other.alive


class Decoder:
    """Runs generations.

    Args:
        model: The model.
        budget: The token budget, shared with the rest of the engine.
        options: Which work is shared, and whether rows leave and enter batches.
        stop: Decides when a generation ends.
    """

    def __init__(
        self, model: GatedModel, budget: Budget, options: EngineOptions, stop: StopRule
    ) -> None:
        self.tokens = 0
        """Number of tokens that were read and generated so far, padding excluded."""
        self._model = model
        self._budget = budget
        self._options = options
        self._stop = stop
        self._processors = cache(self._processors_of)
        self._joins = False

    @torch.inference_mode()
    def run(self, work: Sequence[Decoding], masking: Masking, store: Store) -> None:
        """Runs all generations; answers are stored when they are finished."""
        longest = max((row.length for row in work), default=1)
        self._joins = self._model.sharing(longest).joining  # of any two rows of this run
        together = [row for row in work if self._runs_with_others(row)]
        groups, alone = prefix_groups(
            together, self._options.share_prefixes, self._model.shares_prefixes
        )
        pending = sorted(groups, key=lambda group: len(group.prefix), reverse=True)
        while pending:
            shared = len(pending[0].prefix)
            suffix = max(decoding.length - len(g.prefix) for g in pending for decoding in g.members)
            size = groups_that_fit(pending, self._budget.rows(suffix, cached=shared))
            pack = pending[:size]
            del pending[:size]
            prefixes = {decoding.position: g.prefix for g in pack for decoding in g.members}
            members = [decoding for group in pack for decoding in group.members]
            source = partial(self._on_prefixes, prefixes, masking)
            self._finish(members, shared, source, masking, store)
        self._finish(alone, 0, partial(self._plain, masking), masking, store)
        for decoding in work:
            if not self._runs_with_others(decoding):
                self._generate_alone(decoding, masking, store)

    def _runs_with_others(self, decoding: Decoding) -> bool:
        sharing = self._model.sharing(decoding.length)
        return sharing.decoding and sharing.padding

    def _generate_alone(self, decoding: Decoding, masking: Masking, store: Store) -> None:
        """Generates a row with transformers' own loop: its cache follows the model's own rules."""
        stop, request = self._stop, decoding.request

        def ended(tokens: Tensor, _scores: Any, **_: Any) -> Tensor:
            generated = tokens[0, len(decoding.tokens) :].tolist()
            over = stop.ended(generated, request.stop, request.max_new_tokens)
            return torch.tensor([over], device=tokens.device)

        gates, replacement = masking.of([decoding])
        tokens = torch.tensor([decoding.tokens], device=self._model.device)
        processors = (
            self._processors(
                request.settings, len(request.context), request.max_new_tokens, tokens.device
            )
            if request.settings
            else None
        )
        with self._model.gates(gates, replacement=replacement):
            generated, logits = self._model.generated(
                tokens, ended=ended, longest=request.max_new_tokens, logits_processor=processors
            )
        require_finite(logits[:, None], [decoding.position] * len(logits))
        self.tokens += len(decoding.tokens)
        self._keep(set(), store, decoding, generated)

    def _finish(
        self,
        work: Sequence[Decoding],
        shared: int,
        source: Callable[[deque[Decoding]], Iterator[_Running]],
        masking: Masking,
        store: Store,
    ) -> None:
        """Runs rows to their end; rows that do not fit memory run again in smaller batches.

        Args:
            work: The rows.
            shared: Number of first tokens that are read once for all rows.
            source: Yields prefilled batches of rows from a queue.
            masking: Gates of every mask.
            store: Receives the answers.
        """
        pending = longest_first(work)
        while pending:
            ended: set[int] = set()
            rows = self._budget.rows(pending[0].length - shared, cached=shared)
            queue = deque(pending)
            keep = partial(self._keep, ended, store)
            attempt = partial(self._generate, source(queue), queue, masking, keep)
            self._budget.attempt(attempt, rows=min(rows, len(pending)))
            pending = [decoding for decoding in pending if decoding.position not in ended]

    def _keep(self, ended: set[int], store: Store, decoding: Decoding, tokens: list[int]) -> None:
        """Stores a finished generation."""
        self.tokens += len(tokens)
        ended.add(decoding.position)
        text = self._stop.text(tokens, decoding.request.stop)
        store([(decoding.position, Generation(text, len(tokens)))])

    def _plain(self, masking: Masking, queue: deque[Decoding]) -> Iterator[_Running]:
        """Yields prefilled batches of rows without shared prefixes."""
        while queue:
            size = min(len(queue), self._budget.rows(queue[0].length))
            batch = [queue.popleft() for _ in range(size)]
            yield self._begin(plain_batch(self._model, batch, masking))

    def _on_prefixes(
        self, prefixes: Mapping[int, tuple[int, ...]], masking: Masking, queue: deque[Decoding]
    ) -> Iterator[_Running]:
        """Yields prefilled batches of rows after prefixes that are read once.

        Args:
            prefixes: Shared prefix of each row, by the position of its request.
            masking: Gates of every mask.
            queue: The rows.
        """
        by_prefix: dict[tuple[int, int, tuple[int, ...]], list[Decoding]] = {}
        while queue:
            decoding = queue.popleft()
            key = decoding.mask, decoding.donor, prefixes[decoding.position]
            by_prefix.setdefault(key, []).append(decoding)
        groups = [PrefixGroup(prefix, tuple(rows)) for (_, _, prefix), rows in by_prefix.items()]
        shared = max(len(group.prefix) for group in groups)
        longest = max(decoding.length - len(g.prefix) for g in groups for decoding in g.members)
        size = self._budget.rows(longest, cached=shared)
        for batch in shared_batches(self._model, groups, masking, rows=size):
            yield self._begin(batch)

    def _begin(self, batch: Batch[Decoding]) -> _Running:
        """Reads the prompts of a batch."""
        with batch.gates:
            logits, cache = self._model.forward(
                batch.tokens, batch.attention, keep=1, cache=batch.cache, use_cache=True
            )
        self.tokens += batch.read
        require_finite(logits, [decoding.position for decoding in batch.work])
        newest = self._choose(logits[:, -1], batch.work, {})
        return _Running(batch, newest, cache, joins=self._joins)

    def _generate(
        self,
        source: Iterator[_Running],
        queue: deque[Decoding],
        masking: Masking,
        keep: Keep,
    ) -> None:
        """Decodes until the source is empty and every row is finished.

        Args:
            source: Prefilled batches; the next is taken when there is room for it.
            queue: Rows that the source has not prefilled yet.
            masking: Gates of every mask.
            keep: Receives each generation when it is finished.
        """
        generated: dict[int, list[int]] = {}
        running = next(source, None)
        while running is not None:
            self._note_newest(running, generated, keep)
            alive = [row for row, lives in enumerate(running.alive) if lives]
            if not alive:
                running = next(source, None)
                continue
            if self._options.compact:
                gone = len(running.work) - len(alive)
                if gone >= LEAVE_SHARE * len(running.work):
                    running.keep(alive)
                if queue and self._has_room(running):
                    new = next(source)
                    self._note_newest(new, generated, keep)
                    if any(new.alive):
                        new.keep([row for row, lives in enumerate(new.alive) if lives])
                        running.take_in(new, masking)
            running.attention = nn.functional.pad(running.attention, (0, 1), value=1)
            with running.gates:
                logits, running.cache = self._model.forward(
                    running.newest[:, None],
                    running.attention,
                    keep=1,
                    cache=running.cache,
                    use_cache=True,
                )
            require_finite(logits, [decoding.position for decoding in running.work])
            running.newest = self._choose(logits[:, -1], running.work, generated)

    def _choose(
        self, logits: Tensor, work: Sequence[Decoding], generated: Mapping[int, list[int]]
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
            tokens = torch.tensor(
                [[*work[row].tokens, *generated.get(work[row].position, ())] for row in rows],
                device=logits.device,
            )
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
        from transformers import GenerationConfig

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

    def _note_newest(self, running: _Running, generated: dict[int, list[int]], keep: Keep) -> None:
        """Appends the newest token of each running row, and finishes rows that it ends."""
        newest = running.newest.tolist()
        for row, (decoding, token) in enumerate(zip(running.work, newest, strict=True)):
            if running.alive[row]:
                tokens = generated.setdefault(decoding.position, [])
                tokens.append(token)
                if self._stop.ended(tokens, decoding.request.stop, decoding.request.max_new_tokens):
                    running.alive[row] = False
                    keep(decoding, tokens)

    def _has_room(self, running: _Running) -> bool:
        """Whether enough of the budget is free for new rows, and the cache can be extended."""
        used = sum(decoding.length for decoding in running.work)
        return running.joins and used <= (1 - REFILL_SHARE) * self._budget.tokens
