"""Converts plans into questions for an engine, and its answers into responses."""

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
    """The questions to an engine for some rows: plain data, which can be sent to another process.

    Attributes:
        gates: Gates of every mask, `(masks, components)`.
        gate_index: Row of `gates` for every request or margin, `(asked,)`.
        donor_index: Row of the donors for every request or margin, `(asked,)`.
        row_index: Row of the plan for every request or margin, `(asked,)`.
        rows: Number of rows of the plan.
        requests: The requests to answer.
        margins: The margins to differentiate instead, one for each row.
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
    """Observations of a class that are measured together.

    Attributes:
        batch: The observations.
    """

    batch: tuple[Observation, ...]

    @property
    def rows(self) -> int:
        """Number of observations."""
        return len(self.batch)


Job = Questions | Observations
"""A unit of work of a worker."""


@dataclass(frozen=True)
class Answers:
    """The answers of an engine.

    Attributes:
        outputs: Answers to requests.
        values: Values of margins.
        gradients: Gradients of margins.
        vectors: Vectors of observations.
    """

    outputs: tuple[Output, ...] = ()
    values: NDArray[np.float64] | None = None
    gradients: NDArray[np.float32] | None = None
    vectors: tuple[NDArray[np.float32], ...] = ()


def answer(engine: Engine, questions: Job) -> Answers:
    """Answers questions with an engine.

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
    """Converts plans into questions and answers into responses; it runs no model.

    Args:
        bank: The items that plans refer to by position, each with the task that scores it.
        response: Response of plans that name none.
        ablation: How components are ablated.
        donors: Position in the bank of every donor's item, for `resample`: no row gets a donor of
            its own item.
        donor_keys: Seed of every bank item's draws of donors; by default its position.
        keep_outputs: Whether to return the model's answers.
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
        """Replaces the bank by the same items whose tasks now know right answers."""
        self._bank = tuple(bank)
        self._margins = {}

    def questions(self, plan: Plan, *, outputs: bool = False) -> Questions:
        """Returns the questions of a plan.

        Args:
            plan: The rows.
            outputs: Whether to ask the items' own requests, regardless of the plan's response.

        Raises:
            TaskUnusable: The response is a margin, and an item has no reference answer.
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
        """Returns the responses of a plan's rows.

        Returns:
            The margin or its probability, or the task's metric, negated if lower is better.
        """
        response = plan.response or self._response
        if plan.gradients:
            values, gradients = answers.values, answers.gradients
            assert values is not None
            assert gradients is not None
            assert questions.margins is not None
            if response == "probability":
                pairs = list(zip(questions.margins, values.tolist(), strict=True))
                slopes = [margin.slope(value) for margin, value in pairs]
                gradients = gradients * np.array(slopes, dtype=np.float32)[:, None]
                values = np.array([margin.probability(value) for margin, value in pairs])
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
        """Returns the tasks' metrics of outputs, row by row, negated if lower is better."""
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
        """Returns whether each row's task is scored by a function of the caller, `(rows,)`.

        The journal keeps outputs of such rows, not their scores, because it cannot distinguish two
        functions.
        """
        by_item = np.array([benchmark.rescored for benchmark, _ in self._bank], dtype=bool)
        rows: NDArray[np.bool_] = by_item[plan.item_index]
        return rows

    def outputs(self, questions: Questions, answers: Answers) -> list[tuple[Output, ...]]:
        """Returns the answers row by row."""
        ends = np.cumsum(np.bincount(questions.row_index, minlength=questions.rows)).tolist()
        starts = [0, *ends][:-1]
        return [answers.outputs[start:end] for start, end in zip(starts, ends, strict=True)]

    def named(self, error: BadLogits, plan: Plan, questions: Questions) -> BadLogits:
        """Returns the error with the item and the number of ablated components of its row."""
        row = int(questions.row_index[error.request])
        _, item = self._bank[plan.item_index[row]]
        ablated = int(plan.masks[plan.mask_index[row]].sum())
        return BadLogits(
            f"item {item.number} of task '{item.task}' with {ablated} components ablated: {error}",
            request=error.request,
        )

    def _margin(self, position: int) -> Margin:
        """Returns the margin of an item, computed once."""
        if position not in self._margins:
            benchmark, item = self._bank[position]
            margin = benchmark.margin(item)
            if margin is None:
                raise TaskUnusable(
                    f"item {item.number} of task '{benchmark.name}' has no answer for a margin: "
                    "use another `response` such as accuracy, or another `reference`"
                )
            self._margins[position] = margin
        return self._margins[position]

    def _gates(self, plan: Plan) -> NDArray[np.float32]:
        if plan.scale is None:
            return self._ablation.gates(plan.masks)
        return replace(self._ablation, scale=plan.scale).gates(plan.masks)

    def _donor_index(self, plan: Plan) -> NDArray[np.intp]:
        """Returns the donor of every row, drawn by its mask and item, from another item."""
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
        """Returns the first donor from a given one on whose item is not at `position`."""
        count = len(self._donors)
        candidates = (number % count for number in range(donor, donor + count))
        return next((place for place in candidates if self._donors[place] != position), donor)
