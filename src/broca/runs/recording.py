"""A run that is written to a journal: what it is, and the executors that write it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from broca.engine import Ablation, Engine, EngineOptions, Progress
from broca.errors import BadInput
from broca.executors import (
    Asker,
    Executor,
    JournaledExecutor,
    LocalExecutor,
    RayExecutor,
    RayOptions,
    RayPool,
    Recording,
    WorkerSpec,
    require_ray,
)
from broca.journal import Condition, ItemRecord, Journal
from broca.journal.encoding import encoded
from broca.journal.store import now
from broca.measurement import Response
from broca.models import GatedModel, GatePoint
from broca.runs.interrupts import Stopper
from broca.searches import Problem
from broca.tasks import Benchmark, Item
from broca.tasks.digests import definition_digest, item_digests, margin_digest, tokenizer_digest

NOMINAL_S = 1.0
"""Seconds of work that a kill may lose, on the machine of `NOMINAL_FLOPS`."""

NOMINAL_FLOPS = {"cpu": 1e11, "cuda": 1e14}
"""Operations a second that a device is taken to do; a wrong guess costs nothing but that time."""


@dataclass
class Journaling:
    """How a run is kept.

    Attributes:
        path: The journal's file; in memory alone if None.
        keep_outputs: Share of the rows whose raw output is kept.
        stopper: Puts off Ctrl+C until rows are kept.
        on_begin: Receives the run's digests, once they are known.

    Raises:
        BadInput: A share that is none.
    """

    path: str | Path | None = None
    keep_outputs: float = 0.0
    stopper: Stopper | None = None
    on_begin: Callable[[dict[str, Any]], None] = lambda facts: None
    opened: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    """What the run opened; all is closed with the journal."""
    users: int = field(default=0, init=False, repr=False)
    """Calls that keep their rows here and have not ended; the last one closes the journal."""
    _journal: Journal | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.keep_outputs <= 1:
            raise BadInput(f"--keep-outputs must lie between 0 and 1, not at {self.keep_outputs:g}")

    def close(self) -> None:
        """Closes the journal of the run that was begun, and ends its workers."""
        self.opened.close()
        self._journal = None

    def begin(
        self,
        *,
        model: GatedModel,
        bank: Sequence[tuple[Benchmark, Item]],
        engine: Engine | RayPool,
        ablation: Ablation,
        donors: Sequence[int],
        settings: Mapping[str, Any],
        progress: RowProgress,
    ) -> Recorder:
        """Opens the journal, unless another call has, and writes the run down.

        Args:
            model: What is ablated.
            bank: The items that plans refer to by position.
            engine: Runs the requests, here or in workers.
            ablation: What becomes of ablated components.
            donors: Bank positions of the items that donors are taken from.
            settings: What was asked; with the weights and the items it identifies the run.
            progress: Receives where chunks begin.

        Raises:
            JournalError: The journal cannot be used.
        """
        if self._journal is None:
            self._journal = self.opened.enter_context(
                Journal.in_memory() if self.path is None else Journal(self.path)
            )
        journal = self._journal
        digests = bank_digests(bank)
        condition = condition_of(model, ablation, [digests[position] for position in donors])
        items = journal.items(_records(bank, digests))
        components = journal.components(model.components.names)
        named = [settings, condition.weights, condition.tokenizer, condition.dtype]
        identity = _digest(json.dumps(named).encode() + b"".join(digests))
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
            chunk_tokens=chunk_tokens(
                model,
                engine.token_budget,
                device=engine.device if isinstance(engine, RayPool) else model.device.type,
            ),
            keep_outputs=self.keep_outputs,
            tokens=lambda: engine.tokens,
            measuring=nullcontext if self.stopper is None else self.stopper.measuring,
            checkpoint=(lambda: None) if self.stopper is None else self.stopper.checkpoint,
            on_chunk=progress.at,
        )
        tasks = {benchmark.name: benchmark for benchmark, _ in bank}
        self.on_begin(
            {
                "run": identity.hex(),
                "weights": condition.weights,
                "tokenizer": condition.tokenizer,
                "dtype": condition.dtype,
                "tasks": {name: definition_digest(one).hex() for name, one in tasks.items()},
                "items": _digest(b"".join(digests)).hex(),
            }
        )
        return Recorder(recording, engine, ablation, condition, digests)


P = ParamSpec("P")
R = TypeVar("R")


def closes_journal(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function whose keyword `journal` is opened within close it however it ends.

    A journal that the caller was given open stays open.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        opened = journaling(kwargs.get("journal"))
        kwargs["journal"] = opened
        opened.users += 1
        try:
            return function(*args, **kwargs)
        finally:
            opened.users -= 1
            if not opened.users:
                opened.close()

    return wrapped


def journaling(journal: Any) -> Journaling:
    """How a run is kept, from a path, from nothing, or as it is."""
    return journal if isinstance(journal, Journaling) else Journaling(journal)


def engine_of(
    executor: str | RayOptions,
    model: GatedModel,
    *,
    options: EngineOptions | None,
    donors: dict[GatePoint, Tensor],
    device_map: str | None,
    allow_pickle: bool,
    kept: Journaling,
    progress: RowProgress,
) -> Engine | RayPool:
    """An engine of this process, or a pool of workers that have one each.

    Args:
        executor: `local`, `ray`, or where and how many workers are.
        model: The model; workers load it by its name.
        options: Of every engine.
        donors: What stands in for ablated activations.
        device_map: How workers spread the model over their GPUs.
        allow_pickle: Whether workers may load weights in pickle format.
        kept: Ends the workers with the run.
        progress: Receives how far the requests are.

    Raises:
        BadInput: There is no such executor, or the cluster has no room.
        MissingExtra: Ray is wanted and not installed.
        ExecutorFailed: No worker could be started.
    """
    require_executor(executor)
    if executor == "local":
        return Engine(model, options, donors=donors, on_progress=progress.within)
    spec = WorkerSpec.of(
        model, options=options, donors=donors, device_map=device_map, allow_pickle=allow_pickle
    )
    where = executor if isinstance(executor, RayOptions) else RayOptions()
    return kept.opened.enter_context(RayPool(spec, where, progress.within))


def require_executor(executor: str | RayOptions) -> None:
    """Refuses an executor that there is not.

    Raises:
        BadInput: Another name.
        MissingExtra: Ray is wanted and not installed.
    """
    if executor == "local":
        return
    if executor != "ray" and not isinstance(executor, RayOptions):
        raise BadInput(f"--executor '{executor}' is unknown: use local or ray")
    require_ray()


class RowProgress:
    """Turns the engine's progress within a chunk into progress within the plan.

    Args:
        report: Receives how far the plan is.
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
        engine: Runs the requests, here or in workers.
        ablation: What becomes of ablated components.
        condition: Of rows in accuracy, without gradients.
        digests: Of the bank's items.
    """

    def __init__(
        self,
        recording: Recording,
        engine: Engine | RayPool,
        ablation: Ablation,
        condition: Condition,
        digests: Sequence[bytes],
    ) -> None:
        self._recording = recording
        self._engine = engine
        self._ablation = ablation
        self._condition = condition
        self._digests = tuple(digests)

    def local(
        self,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        donors: Sequence[int],
        response: Response = "accuracy",
        role: str = "scores",
    ) -> JournaledExecutor:
        """An executor of this process or of its workers, with the journal before it.

        Args:
            bank: The run's items in their places; their tasks may meanwhile know right answers.
            donors: Bank positions of the items that the engine's donors are of.
            response: What plans return that do not say it themselves.
            role: What the rows are for: `search` or `scores`.
        """
        how: dict[str, Any] = {
            "response": response,
            "ablation": self._ablation,
            "donors": donors,
            # donors are drawn by an item's content, not by its place
            "donor_keys": [zlib.crc32(digest) for digest in self._digests],
            "keep_outputs": self._recording.keep_outputs > 0,
        }
        inner: Executor
        if isinstance(self._engine, RayPool):
            inner = RayExecutor(self._engine, Asker(bank, **how))
        else:
            inner = LocalExecutor(self._engine, bank, **how)
        return self.executor(inner, bank, response=response, role=role)

    def executor(
        self,
        inner: Executor,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        response: Response,
        role: str,
    ) -> JournaledExecutor:
        """Puts the journal before any executor."""
        known: dict[int, int] = {}

        def margin_items(positions: NDArray[np.intp]) -> NDArray[np.int64]:
            new = sorted(set(positions.tolist()) - set(known))
            own = [margin_digest(bank[one][0], bank[one][1], self._digests[one]) for one in new]
            ids = self._recording.journal.items(_records([bank[one] for one in new], own))
            known.update(zip(new, ids.tolist(), strict=True))
            return np.array([known[one] for one in positions.tolist()], dtype=np.int64)

        return JournaledExecutor(
            inner,
            self._recording,
            condition=replace(self._condition, response=response),
            role=role,
            margin_items=margin_items,
        )

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


def condition_of(model: GatedModel, ablation: Ablation, donors: Sequence[bytes]) -> Condition:
    """What a row of a model depends on under an ablation, in accuracy.

    Args:
        model: The model.
        ablation: What becomes of ablated components.
        donors: Digests of the items that donors are taken from.
    """
    return Condition(
        weights=model.fingerprint,
        tokenizer=tokenizer_digest(model.tokenizer),
        dtype=model.dtype,
        ablation=ablation.kind,
        scale=ablation.scale,
        seed=ablation.seed if ablation.kind == "resample" else 0,
        donors="" if ablation.kind == "zero" else _digest(b"".join(donors)).hex(),
        response="accuracy",
    )


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


def shared_tokens(items: Sequence[Item]) -> dict[str, float]:
    """Tokens that all prompts begin with, and the mean of an item's others; for a `Problem`."""
    contexts = [request.context for item in items for request in item.requests]
    if not contexts:
        return {}
    first, last = min(contexts), max(contexts)  # what these two share, all between them share
    same = zip(first, last, strict=False)
    shared = next((place for place, (a, b) in enumerate(same) if a != b), len(first))
    rest = float(np.mean([tokens_of(item) for item in items])) - shared
    return {"prefix_tokens": float(shared), "item_tokens": max(1.0, rest)}


def _records(bank: Sequence[tuple[Benchmark, Item]], digests: Sequence[bytes]) -> list[ItemRecord]:
    return [
        ItemRecord(digest, item.task, item.number, item.prompt, item.target)
        for digest, (_, item) in zip(digests, bank, strict=True)
    ]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def chunk_tokens(model: GatedModel, budget: int, *, device: str | None = None) -> int:
    """Tokens that are measured between two commits: a second's work, but a batch at least.

    The number depends on the model and the device alone, never on a clock: chunks are cut at the
    same places in every run.
    """
    weights = sum(one.numel() for one in model.model.parameters())
    rate = NOMINAL_FLOPS.get(device or model.device.type, NOMINAL_FLOPS["cuda"])
    return max(budget, int(NOMINAL_S * rate / (2 * weights)))
