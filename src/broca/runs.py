"""A run that is written to a journal: what it is, and the executors that write it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from broca.engine import Ablation, Engine, Progress
from broca.errors import BadInput
from broca.executors import Executor, JournaledExecutor, Recording
from broca.interrupts import Stopper
from broca.journal import Condition, ItemRecord, Journal
from broca.journal.encoding import encoded
from broca.journal.store import now
from broca.models import GatedModel
from broca.searches import Problem
from broca.tasks import Benchmark, Item
from broca.tasks.digests import definition_digest, item_digests, tokenizer_digest

NOMINAL_S = 1.0
"""Seconds of work that a kill may lose, on the machine of `NOMINAL_FLOPS`."""

NOMINAL_FLOPS = {"cpu": 1e11, "cuda": 1e14}
"""Operations a second that a device is taken to do; a wrong guess costs nothing but that time."""


@dataclass(frozen=True)
class Journaling:
    """How a run is kept.

    Attributes:
        path: The journal's file; in memory alone if None.
        keep_outputs: Share of the rows whose raw output is kept.
        stopper: Puts off Ctrl+C until rows are kept.
        on_begin: Told the run's digests, once they are known.
    """

    path: str | Path | None = None
    keep_outputs: float = 0.0
    stopper: Stopper | None = None
    on_begin: Callable[[dict[str, Any]], None] = lambda facts: None

    def __post_init__(self) -> None:
        if not 0 <= self.keep_outputs <= 1:
            raise BadInput(f"--keep-outputs must lie between 0 and 1, not at {self.keep_outputs:g}")


class RowProgress:
    """Turns the engine's progress within a chunk into progress within the plan.

    Args:
        report: Told how far the plan is.
    """

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self._done = self._rows = self._total = self._tokens = self._chunk_tokens = 0

    def at(self, done: int, rows: int, total: int) -> None:
        """A chunk of `rows` begins where `done` of `total` rows are done."""
        self._tokens = 0 if done == 0 else self._tokens + self._chunk_tokens
        self._done, self._rows, self._total, self._chunk_tokens = done, rows, total, 0

    def within(self, progress: Progress) -> None:
        """How far the engine is within the chunk."""
        self._chunk_tokens = progress.tokens
        share = progress.done / max(1, progress.total)
        self._report(
            Progress(
                self._done + int(share * self._rows), self._total, self._tokens + progress.tokens
            )
        )


class Recorder:
    """Makes the executors of a run, which share its journal.

    Args:
        recording: The run in the journal.
        condition: Of rows in accuracy, without gradients.
        digests: Of the bank's items.
    """

    def __init__(
        self, recording: Recording, *, condition: Condition, digests: Sequence[bytes]
    ) -> None:
        self._recording = recording
        self._condition = condition
        self.donor_keys = tuple(zlib.crc32(digest) for digest in digests)
        """Seed of every bank item's draws of donors: its content, not its place."""

    def executor(self, inner: Executor, *, response: str, role: str) -> JournaledExecutor:
        """Puts the journal before an executor that measures in some response."""
        values = {one.name: getattr(self._condition, one.name) for one in fields(Condition)}
        condition = Condition(**{**values, "response": response})
        return JournaledExecutor(inner, self._recording, condition=condition, role=role)

    def note_search(self, method: str, problem: Problem, options: Mapping[str, Any]) -> None:
        """Writes down the search, so that it can be repeated without a model."""
        record = {"method": method, "options": dict(options), "problem": encoded(problem)}
        self._recording.journal.note_search(self._recording.run, record)

    def finish(self) -> tuple[int, int]:
        """Notes that the run came to its end.

        Returns:
            Rows that the run measured, and their tokens, in all its processes.
        """
        recording = self._recording
        recording.journal.finish_run(recording.run)
        return recording.journal.cost(recording.run)


@contextmanager
def recorded(
    journaling: Journaling,
    *,
    model: GatedModel,
    bank: Sequence[tuple[Benchmark, Item]],
    engine: Engine,
    ablation: Ablation,
    donors: Sequence[int],
    settings: Mapping[str, Any],
    progress: RowProgress,
) -> Iterator[Recorder]:
    """Opens the journal and writes the run down; closes it at the end, however that comes.

    Args:
        journaling: Where, and what.
        model: What is ablated.
        bank: The items that plans refer to by position.
        engine: Runs the requests.
        ablation: What becomes of ablated components.
        donors: Bank positions of the items that donors are taken from.
        settings: What was asked; with the weights and the items it identifies the run.
        progress: Told where chunks begin.

    Raises:
        JournalError: The journal cannot be used.
    """
    digests = bank_digests(bank)
    drawn = ablation.kind != "zero"
    joined = b"".join(digests[position] for position in donors)
    condition = Condition(
        weights=model.fingerprint,
        tokenizer=tokenizer_digest(model.tokenizer),
        dtype=model.dtype,
        ablation=ablation.kind,
        scale=ablation.scale,
        seed=ablation.seed if ablation.kind == "resample" else 0,
        donors=hashlib.blake2b(joined, digest_size=16).hexdigest() if drawn else "",
        response="accuracy",
    )
    stopper = journaling.stopper
    with Journal.in_memory() if journaling.path is None else Journal(journaling.path) as journal:
        items = journal.items(
            [
                ItemRecord(digest, item.task, item.number, item.prompt, item.target)
                for digest, (_, item) in zip(digests, bank, strict=True)
            ]
        )
        components = journal.components(model.components.names)
        identity = hashlib.blake2b(
            json.dumps([settings, condition.weights, condition.tokenizer, condition.dtype]).encode()
            + b"".join(digests),
            digest_size=16,
        ).digest()
        run = journal.begin_run(
            identity,
            settings=settings,
            components=components,
            items=items,
            process=f"process {os.getpid()} on {platform.node()} since {now()}",
        )
        recording = Recording(
            journal=journal,
            run=run,
            components=components,
            items=items,
            lengths=np.array([tokens_of(item) for _, item in bank], dtype=np.int64),
            chunk_tokens=chunk_tokens(model, engine.token_budget),
            keep_outputs=journaling.keep_outputs,
            tokens=lambda: engine.tokens,
            measuring=nullcontext if stopper is None else stopper.measuring,
            checkpoint=(lambda: None) if stopper is None else stopper.checkpoint,
            on_chunk=progress.at,
        )
        tasks = {benchmark.name: benchmark for benchmark, _ in bank}
        journaling.on_begin(
            {
                "run": identity.hex(),
                "weights": condition.weights,
                "tokenizer": condition.tokenizer,
                "dtype": condition.dtype,
                "tasks": {name: definition_digest(one).hex() for name, one in tasks.items()},
                "items": hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest(),
            }
        )
        yield Recorder(recording, condition=condition, digests=digests)


def bank_digests(bank: Sequence[tuple[Benchmark, Item]]) -> list[bytes]:
    """Digest of every item of a bank, 16 bytes each."""
    places: dict[Benchmark, list[int]] = {}
    for position, (benchmark, _) in enumerate(bank):
        places.setdefault(benchmark, []).append(position)
    digests = [b""] * len(bank)
    for benchmark, positions in places.items():
        own = item_digests(benchmark, [bank[position][1] for position in positions])
        for position, digest in zip(positions, own, strict=True):
            digests[position] = digest
    return digests


def tokens_of(item: Item) -> int:
    """Tokens that a row of an item takes, a context that its requests share counted once."""
    contexts = {request.context for request in item.requests}
    own = sum(len(one.continuation) + one.max_new_tokens for one in item.requests)
    return sum(len(context) for context in contexts) + own


def chunk_tokens(model: GatedModel, budget: int) -> int:
    """Tokens that are measured between two commits: a second's work, but a batch at least.

    The number depends on the model and the device alone, never on a clock: chunks are cut at the
    same places in every run.
    """
    weights = sum(one.numel() for one in model.model.parameters())
    rate = NOMINAL_FLOPS.get(model.device.type, NOMINAL_FLOPS["cuda"])
    return max(budget, int(NOMINAL_S * rate / (2 * weights)))
