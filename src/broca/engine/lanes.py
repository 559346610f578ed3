"""Lanes: copies of a small model with one thread each, which are faster on a CPU.

Small matrices do not divide well among threads (experiments/LOG.md). A lane is a copy of the
modules around the same weights, with its own hooks, batches and thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import torch

from broca.engine.budget import Budget
from broca.engine.decoding import Decoder
from broca.engine.reading import Reader
from broca.engine.stopping import StopRule
from broca.engine.work import Decoding, Masking, Reading, Store, W
from broca.models import GatedModel
from broca.options import EngineOptions

SMALL = 20_000_000
"""Maximum number of parameters of a model that gets lanes by default; measured at 1.2 million."""

_WORTH = 64
"""Number of units of work below which one lane runs all of them."""


class Workload(NamedTuple):
    """Sequences to read, and generations."""

    readings: Sequence[Reading]
    decodings: Sequence[Decoding]


@dataclass(frozen=True, eq=False)
class Lane:
    """A copy of the model with its reader and decoder.

    Attributes:
        model: The model, or a copy around the same weights.
        budget: Its token budget.
        reader: Runs readings.
        decoder: Runs decodings.
    """

    model: GatedModel
    budget: Budget
    reader: Reader
    decoder: Decoder

    @classmethod
    def of(cls, model: GatedModel, options: EngineOptions, stop: StopRule) -> Lane:
        """Makes a lane on a model."""
        budget = Budget(model, options.token_budget)
        return cls(
            model,
            budget,
            Reader(model, budget, options),
            Decoder(model, budget, options, stop),
        )

    @property
    def tokens(self) -> int:
        """Number of tokens that were read or generated so far, padding excluded."""
        return self.reader.tokens + self.decoder.tokens

    def run(self, work: Workload, masking: Masking, store: Store) -> None:
        """Runs its share of the work."""
        if work.readings:
            self.reader.run(work.readings, masking, store)
        if work.decodings:
            self.decoder.run(work.decodings, masking, store)


class Lanes:
    """The lanes of an engine; copies are made when there is enough work for them.

    Args:
        model: The model.
        options: Which work is shared, the size of batches, and the number of lanes.
        stop: Decides when a generation ends.
    """

    def __init__(self, model: GatedModel, options: EngineOptions, stop: StopRule) -> None:
        self._options = options
        self._stop = stop
        self._number = options.lanes or _useful(model)
        self.all = [Lane.of(model, options, stop)]
        """The lanes; the first is on the model itself."""

    def run(self, work: Workload, masking: Masking, store: Store) -> None:
        """Runs all work, in several threads if that is faster.

        Args:
            work: The readings and generations.
            masking: Gates of every mask, for the engine's model.
            store: Receives answers; called from several threads.
        """
        first = self.all[0]
        if self._number == 1 or len(work.readings) + len(work.decodings) < _WORTH:
            first.run(work, masking, store)
            return
        while len(self.all) < self._number:
            self.all.append(Lane.of(first.model.copy(), self._options, self._stop))
        by_sequence = first.reader.skips_layers(work.readings, masking)
        readings = sorted(work.readings, key=_sequence_first if by_sequence else _mask_first)
        decodings = sorted(work.decodings, key=_mask_first)
        shares = map(Workload, _shares(readings, self._number), _shares(decodings, self._number))
        threads = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(self._number, initializer=_one_thread) as pool:
                ends = [
                    pool.submit(lane.run, share, _of_lane(masking, first, lane), store)
                    for lane, share in zip(self.all, shares, strict=True)
                ]
            for end in ends:
                end.result()
        finally:
            torch.set_num_threads(threads)  # a library may keep a single number for all threads


def _useful(model: GatedModel) -> int:
    """Returns the number of threads for a small model on a CPU, else 1."""
    size = sum(parameter.numel() for parameter in model.model.parameters())
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.model.parameters())
    return max(1, torch.get_num_threads()) if on_cpu and size <= SMALL else 1


def _one_thread() -> None:
    torch.set_num_threads(1)


def _mask_first(row: Reading | Decoding) -> tuple[int, int, tuple[int, ...]]:
    """Sort key that keeps work under a mask together, which may share prefixes."""
    return row.mask, row.donor, row.tokens


def _sequence_first(row: Reading | Decoding) -> tuple[tuple[int, ...], int, int]:
    """Sort key that keeps work on a sequence together, which may share lower layers."""
    return row.tokens, row.mask, row.donor


def _shares(work: Sequence[W], number: int) -> list[list[W]]:
    """Divides work into `number` parts of approximately equal length."""
    total = sum(row.length for row in work)
    shares: list[list[W]] = [[] for _ in range(number)]
    before = 0
    for row in work:
        shares[min(number - 1, before * number // max(1, total))].append(row)
        before += row.length
    return shares


def _of_lane(masking: Masking, first: Lane, lane: Lane) -> Masking:
    """Returns the gates and donors at the gate points of a lane's modules."""
    pairs = zip(first.model.points, lane.model.points, strict=True)
    return Masking(
        masking.gates,
        {copied: masking.donors[point] for point, copied in pairs if point in masking.donors},
    )
