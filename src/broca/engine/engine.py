"""The engine: answers requests under masks; every row of a batch has its own mask.

It depends on requests and gates only, not on tasks' metrics or searches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from broca.engine.gradients import Differentiator
from broca.engine.lanes import Lanes, Workload
from broca.engine.stopping import StopRule
from broca.engine.work import Decoding, Masking, Reading
from broca.models import GatedModel, GatePoint
from broca.options import EngineOptions
from broca.tasks.items import Output, Request
from broca.tasks.margins import Margin


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes:
        done: Number of answered requests.
        total: Number of requests.
        tokens: Number of tokens that the model has read or generated, padding excluded.
        seconds_left: Expected time of the remaining requests; None if it is unknown.
        guessed: Whether it is based on speeds that are not measured yet.
    """

    done: int
    total: int
    tokens: int
    seconds_left: float | None = None
    guessed: bool = False


class Engine:
    """Runs requests on a gated model.

    Args:
        model: The model.
        options: Which work is shared, and the size of batches.
        donors: Activations that replace ablated ones, `(donors, width)` for each gate point, as
            from `donor_activations`; zeros if None.
        on_progress: Called after every batch.
    """

    def __init__(
        self,
        model: GatedModel,
        options: EngineOptions | None = None,
        *,
        donors: dict[GatePoint, torch.Tensor] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        options = options or EngineOptions()
        self.model = model
        self._donors = donors or {}
        self._on_progress = on_progress
        self._lanes = Lanes(model, options, StopRule(model.tokenizer, eos_tokens(model)))
        self._differentiator = Differentiator(model, self._lanes.all[0].budget)
        self.observed_tokens = 0
        """Number of tokens that observations have read, which they count themselves."""

    @property
    def tokens(self) -> int:
        """Number of tokens that the model has read or generated so far, padding excluded."""
        answered = sum(lane.tokens for lane in self._lanes.all) + self._differentiator.tokens
        return answered + self.observed_tokens

    @property
    def token_budget(self) -> int:
        """Most tokens of a batch at present."""
        return min(lane.budget.tokens for lane in self._lanes.all)

    @property
    def device(self) -> str:
        """The kind of device that the model runs on."""
        return self.model.device.type

    def run(
        self,
        requests: Sequence[Request],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
        donor_index: NDArray[np.intp] | None = None,
    ) -> list[Output]:
        """Answers every request under its gates.

        Args:
            requests: The requests.
            gates: Gates of every mask, `(masks, components)`.
            gate_index: Row of every request in `gates`, `(requests,)`.
            donor_index: Row of every request in the donors, `(requests,)`; the first if None.

        Returns:
            The answers, in the order of the requests, independent of the batch size.

        Raises:
            BadLogits: The model returned NaN or infinite logits.
            BadInput: The model has no embedding for a token.
        """
        if donor_index is None:
            donor_index = np.zeros(len(requests), dtype=np.intp)
        for request in {id(request): request for request in requests}.values():
            self.model.require_embedded((*request.context, *request.continuation))
        answers: list[Output | None] = [None] * len(requests)
        start, done, one_at_a_time = self.tokens, 0, Lock()

        def store(results: Sequence[tuple[int, Output]]) -> None:
            nonlocal done
            with one_at_a_time:
                for position, answer in results:
                    assert answers[position] is None, "a request was answered twice"
                    answers[position] = answer
                done += len(results)
                if self._on_progress is not None:
                    self._on_progress(Progress(done, len(requests), self.tokens - start))

        work = workload_of(requests, gate_index, donor_index)
        with self.model.in_use():
            self.model.sharing(max((row.length for rows in work for row in rows), default=1))
            self._lanes.run(work, self._masking(gates), store)
        return [answer for answer in answers if answer is not None]

    def differentiate(
        self,
        margins: Sequence[Margin],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
        donor_index: NDArray[np.intp] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Computes margins and their gradients with respect to their rows' gates.

        Args:
            margins: Margin of every row.
            gates: Gates of every mask, `(masks, components)`.
            gate_index: Row of `gates` for every margin, `(rows,)`.
            donor_index: Row of the donors for every margin, `(rows,)`; the first if None.

        Returns:
            Margins `(rows,)` and gradients `(rows, components)`, in nats (per unit of gate).

        Raises:
            BadLogits: The model returned NaN or infinite logits.
        """
        if donor_index is None:
            donor_index = np.zeros(len(margins), dtype=np.intp)
        for margin in {id(margin): margin for margin in margins}.values():
            for request in margin.requests:
                self.model.require_embedded((*request.context, *request.continuation))
        rows = [
            (margin, int(mask), int(donor))
            for margin, mask, donor in zip(margins, gate_index, donor_index, strict=True)
        ]
        with self.model.in_use():
            return self._differentiator.run(rows, self._masking(gates))

    def _masking(self, gates: NDArray[np.float32]) -> Masking:
        return Masking(
            torch.from_numpy(np.ascontiguousarray(gates, dtype=np.float32)), self._donors
        )


def workload_of(
    requests: Sequence[Request], gate_index: NDArray[np.intp], donor_index: NDArray[np.intp]
) -> Workload:
    """Sorts requests into readings and decodings.

    Requests that read the same tokens under the same gates and donors share a reading.

    Args:
        requests: The requests.
        gate_index: Row of every request in the gates, `(requests,)`.
        donor_index: Row of every request in the donors, `(requests,)`.
    """
    readings: dict[tuple[int, int, tuple[int, ...]], Reading] = {}
    decodings: list[Decoding] = []
    tokens_of: dict[int, tuple[int, ...]] = {}  # the same request occurs under many masks
    for position, (request, mask, donor) in enumerate(
        zip(requests, gate_index.tolist(), donor_index.tolist(), strict=True)
    ):
        if request.kind == "loglikelihood":
            tokens = tokens_of.get(id(request))
            if tokens is None:
                tokens = tokens_of[id(request)] = (*request.context, *request.continuation)[:-1]
            reading = readings.get((mask, donor, tokens))
            if reading is None:
                reading = readings[mask, donor, tokens] = Reading(mask, donor, tokens)
            reading.targets.append((position, request.continuation))
        else:
            decodings.append(Decoding(mask, donor, position, request))
    return Workload(list(readings.values()), decodings)


def eos_tokens(model: GatedModel) -> list[int]:
    """Returns the end-of-sequence tokens that generation with transformers uses."""
    configured = getattr(model.model.generation_config, "eos_token_id", None)
    if configured is None:
        configured = model.tokenizer.eos_token_id
    if configured is None:
        return []
    return [configured] if isinstance(configured, int) else list(configured)
