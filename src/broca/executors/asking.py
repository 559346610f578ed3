"""What plans and observations ask of an engine, wherever it runs, and what its answers say."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from broca.engine import Ablation, Engine
from broca.errors import BadLogits, TaskUnusable
from broca.measurement import Measurement, Observation, Plan, Response
from broca.tasks import Benchmark, Item, LogLikelihood, Margin, Output, Request
from broca.tasks.code import run_code_ahead


@dataclass(frozen=True)
class Questions:
    """What an engine is asked for some rows: plain data, which can be sent to another process.

    Attributes:
        gates: Gates of every mask, `(masks, components)`.
        gate_index: For every request or margin its row in `gates`, `(asked,)`.
        donor_index: For every request or margin its row in the donors, `(asked,)`.
        row_index: For every request or margin its row of the plan, `(asked,)`.
        rows: Rows of the plan.
        requests: What is to be answered.
        margins: What is to be differentiated instead, one for each row.
    """

    gates: NDArray[np.float32]
    gate_index: NDArray[np.intp]
    donor_index: NDArray[np.intp]
    row_index: NDArray[np.intp]
    rows: int
    requests: tuple[Request, ...] = ()
    margins: tuple[Margin, ...] | None = None


@dataclass(frozen=True)
class Observations:
    """Observations of one class that are taken together.

    Attributes:
        batch: The observations.
    """

    batch: tuple[Observation, ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.batch)


Job = Questions | Observations
"""What a worker is given at a time."""


@dataclass(frozen=True)
class Answers:
    """What an engine answered.

    Attributes:
        outputs: To requests.
        values: Of margins.
        gradients: Of margins.
        vectors: Of observations.
    """

    outputs: tuple[Output, ...] = ()
    values: NDArray[np.float64] | None = None
    gradients: NDArray[np.float32] | None = None
    vectors: tuple[NDArray[np.float32], ...] = ()


def answer(engine: Engine, questions: Job) -> Answers:
    """Lets an engine answer.

    Raises:
        BadLogits: The model returned NaN or infinite logits.
    """
    if isinstance(questions, Observations):
        kind = type(questions.batch[0])
        return Answers(vectors=tuple(kind.observe(engine, questions.batch)))
    where = (questions.gates, questions.gate_index, questions.donor_index)
    if questions.margins is not None:
        values, gradients = engine.differentiate(questions.margins, *where)
        return Answers(values=values, gradients=gradients)
    return Answers(tuple(engine.run(questions.requests, *where)))


class Asker:
    """Turns plans into questions and answers into responses; it runs no model.

    Args:
        bank: The items that plans refer to by position, each with the task that scores it.
        response: What plans return that do not say it themselves.
        ablation: What becomes of ablated components.
        donors: For every donor of the engine the position in the bank of its item, for `resample`:
            no row gets one of its own item.
        donor_keys: Seed of every bank item's draws of donors; its position if None.
        keep_outputs: Whether to hand over what the model answered.
    """

    def __init__(
        self,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        response: Response = "accuracy",
        ablation: Ablation | None = None,
        donors: Sequence[int] = (),
        donor_keys: Sequence[int] | None = None,
        keep_outputs: bool = False,
    ) -> None:
        self._bank = tuple(bank)
        self._response = response
        self._ablation = ablation or Ablation()
        self._donors = tuple(donors)
        self._donor_keys = tuple(range(len(bank)) if donor_keys is None else donor_keys)
        self._keep_outputs = keep_outputs
        self._margins: dict[int, Margin] = {}

    def refer(self, bank: Sequence[tuple[Benchmark, Item]]) -> None:
        """Takes the same items again, whose tasks now know right answers."""
        self._bank = tuple(bank)
        self._margins = {}

    def questions(self, plan: Plan, *, outputs: bool = False) -> Questions:
        """What a plan asks.

        Args:
            plan: The rows.
            outputs: Ask the items' own requests, whatever the plan returns.

        Raises:
            TaskUnusable: Margins are wanted, and an item has no answer to compare with.
        """
        gates, donors = self._gates(plan), self._donor_index(plan)
        if plan.gradients and not outputs:
            margins = tuple(self._margin(position) for position in plan.item_index.tolist())
            rows = np.arange(len(plan), dtype=np.intp)
            return Questions(gates, plan.mask_index, donors, rows, len(plan), margins=margins)
        response = "accuracy" if outputs else plan.response or self._response
        by_item = {
            position: self._bank[position][1].requests
            if response == "accuracy"
            else self._margin(position).requests
            for position in set(plan.item_index.tolist())
        }
        requests = [by_item[position] for position in plan.item_index.tolist()]
        counts = [len(row_requests) for row_requests in requests]
        rows = np.repeat(np.arange(len(plan), dtype=np.intp), counts)
        return Questions(
            gates,
            plan.mask_index[rows],
            donors[rows],
            rows,
            len(plan),
            tuple(request for row_requests in requests for request in row_requests),
        )

    def measurement(self, plan: Plan, questions: Questions, answers: Answers) -> Measurement:
        """The responses of a plan's rows.

        Returns:
            The margin or its probability, or the task's metric, negated where lower is better.
        """
        response = plan.response or self._response
        if plan.gradients:
            values, gradients = answers.values, answers.gradients
            assert values is not None
            assert gradients is not None
            assert questions.margins is not None
            if response == "probability":
                pairs = list(zip(questions.margins, values.tolist(), strict=True))
                slopes = np.array([one.slope(value) for one, value in pairs], dtype=np.float32)
                gradients = gradients * slopes[:, None]
                values = np.array([one.probability(value) for one, value in pairs])
            return Measurement(plan, values, gradients)
        outputs = self.outputs(questions, answers)
        if response == "accuracy":
            responses = self.scores(plan, outputs)
        else:
            responses = np.empty(len(plan))
            for row, (position, output) in enumerate(zip(plan.item_index, outputs, strict=True)):
                margin = self._margin(position)
                value = margin.of_answers(cast("tuple[LogLikelihood, ...]", output))
                responses[row] = margin.probability(value) if response == "probability" else value
        return Measurement(plan, responses, outputs=tuple(outputs) if self._keep_outputs else None)

    def scores(self, plan: Plan, outputs: Sequence[tuple[Output, ...]]) -> NDArray[np.float64]:
        """The tasks' metrics of outputs, row by row, negated where lower is better."""
        run_code_ahead(
            partial(self._bank[position][0].score, self._bank[position][1], output)
            for position, output in zip(plan.item_index, outputs, strict=True)
        )
        scores = np.empty(len(plan))
        for row, (position, output) in enumerate(zip(plan.item_index, outputs, strict=True)):
            benchmark, item = self._bank[position]
            score = benchmark.score(item, output)
            scores[row] = score if benchmark.higher_is_better else -score
        return scores

    def rescored(self, plan: Plan) -> NDArray[np.bool_]:
        """Whether each row's task is scored by a function of the caller, `(rows,)`.

        The journal keeps outputs of such rows, never their scores: it could not tell two functions
        apart.
        """
        by_item = np.array([benchmark.rescored for benchmark, _ in self._bank], dtype=bool)
        rows: NDArray[np.bool_] = by_item[plan.item_index]
        return rows

    def outputs(self, questions: Questions, answers: Answers) -> list[tuple[Output, ...]]:
        """The answers row by row."""
        ends = np.cumsum(np.bincount(questions.row_index, minlength=questions.rows)).tolist()
        starts = [0, *ends][:-1]
        return [answers.outputs[start:end] for start, end in zip(starts, ends, strict=True)]

    def named(self, error: BadLogits, plan: Plan, questions: Questions) -> BadLogits:
        """The error with the item and the number of ablated components of its row."""
        row = int(questions.row_index[error.request])
        _, item = self._bank[plan.item_index[row]]
        ablated = int(plan.masks[plan.mask_index[row]].sum())
        return BadLogits(
            f"item {item.number} of task '{item.task}' with {ablated} components ablated: {error}",
            request=error.request,
        )

    def _margin(self, position: int) -> Margin:
        """How an item's margin is asked for, made once."""
        if position not in self._margins:
            self._margins[position] = self._new_margin(position)
        return self._margins[position]

    def _new_margin(self, position: int) -> Margin:
        benchmark, item = self._bank[position]
        margin = benchmark.margin(item)
        if margin is None:
            raise TaskUnusable(
                f"item {item.number} of task '{benchmark.name}' has no answer to take a margin "
                "from: use another `response` such as accuracy, or another `reference`"
            )
        return margin

    def _gates(self, plan: Plan) -> NDArray[np.float32]:
        if plan.scale is None:
            return self._ablation.gates(plan.masks)
        return replace(self._ablation, scale=plan.scale).gates(plan.masks)

    def _donor_index(self, plan: Plan) -> NDArray[np.intp]:
        """The donor of every row: seeded by its mask and item, never the item's own."""
        if not self._ablation.draws_donors:
            return np.zeros(len(plan), dtype=np.intp)
        keys = [zlib.crc32(np.packbits(mask).tobytes()) for mask in plan.masks]
        chosen = np.empty(len(plan), dtype=np.intp)
        for row, (mask, position) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            key = self._donor_keys[position]
            rng = np.random.default_rng([self._ablation.seed, keys[mask], key])
            donor = int(rng.integers(len(self._donors)))
            chosen[row] = self._next_other(donor, position)
        return chosen

    def _next_other(self, donor: int, position: int) -> int:
        """The first donor from a given one on that is of another item than `position`."""
        count = len(self._donors)
        later = (candidate % count for candidate in range(donor, donor + count))
        return next((one for one in later if self._donors[one] != position), donor)
