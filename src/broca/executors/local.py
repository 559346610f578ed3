"""Runs plans in this process."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from broca.engine import Ablation, Engine
from broca.errors import BadLogits, TaskUnusable
from broca.plan import Measurement, Plan
from broca.tasks import Benchmark, Item, LogLikelihood, Margin, Request
from broca.tasks.code import run_code_ahead

Response = Literal["accuracy", "margin"]


class LocalExecutor:
    """Measures the rows of plans with an engine of this process.

    Args:
        engine: Runs the requests.
        bank: The items that plans refer to by position, each with the task that scores it.
        response: `accuracy` is the task's own metric; `margin` is continuous, see `Margin`.
        ablation: What becomes of ablated components.
        donors: Positions in the bank of the items whose activations the engine's donors are, for
            `resample`: no row gets its own item's.
    """

    def __init__(
        self,
        engine: Engine,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        response: Response = "accuracy",
        ablation: Ablation | None = None,
        donors: Sequence[int] = (),
    ) -> None:
        self._engine = engine
        self._bank = tuple(bank)
        self._response = response
        self._ablation = ablation or Ablation()
        self._donors = tuple(donors)
        self.rows = 0
        """Rows measured so far; a row with its gradient counts as three."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan.

        Returns:
            The responses: the margin, or the task's metric, negated where lower is better.

        Raises:
            TaskUnusable: Margins are wanted, and an item has no answer to compare with.
        """
        if plan.gradients:
            margins = [self._margin(position) for position in plan.item_index]
            try:
                responses, gradients = self._engine.differentiate(
                    margins, self._gates(plan), plan.mask_index, self._donor_index(plan)
                )
            except BadLogits as error:
                raise self._named(error, plan, error.request) from error
            self.rows += plan.cost
            return Measurement(plan, responses, gradients)
        by_item = {
            position: self._margin(position).requests
            if self._response == "margin"
            else self._bank[position][1].requests
            for position in set(plan.item_index.tolist())
        }
        requests: list[Request] = []
        spans: list[tuple[int, int]] = []
        for position in plan.item_index:
            spans.append((len(requests), len(requests) + len(by_item[position])))
            requests += by_item[position]
        counts = [end - start for start, end in spans]
        try:
            outputs = self._engine.run(
                requests,
                self._gates(plan),
                np.repeat(plan.mask_index, counts),
                np.repeat(self._donor_index(plan), counts),
            )
        except BadLogits as error:
            row = int(np.searchsorted(np.cumsum(counts), error.request, side="right"))
            raise self._named(error, plan, row) from error
        responses = np.empty(len(plan))
        if self._response == "accuracy":
            run_code_ahead(
                partial(self._bank[position][0].score, self._bank[position][1], outputs[start:end])
                for position, (start, end) in zip(plan.item_index, spans, strict=True)
            )
        for row, (position, (start, end)) in enumerate(zip(plan.item_index, spans, strict=True)):
            benchmark, item = self._bank[position]
            answers = outputs[start:end]
            if self._response == "margin":
                read = cast("list[LogLikelihood]", answers)
                responses[row] = self._margin(position).of_answers(read)
            else:
                score = benchmark.score(item, answers)
                responses[row] = score if benchmark.higher_is_better else -score
        self.rows += plan.cost
        return Measurement(plan, responses)

    def _named(self, error: BadLogits, plan: Plan, row: int) -> BadLogits:
        """The error with the item and the number of ablated components of its row."""
        _, item = self._bank[plan.item_index[row]]
        ablated = int(plan.masks[plan.mask_index[row]].sum())
        return BadLogits(
            f"item {item.number} of task '{item.task}' with {ablated} components ablated: {error}",
            request=error.request,
        )

    def _margin(self, position: int) -> Margin:
        benchmark, item = self._bank[position]
        margin = benchmark.margin(item)
        if margin is None:
            raise TaskUnusable(
                f"item {item.number} of task '{benchmark.name}' has no answer to take a margin "
                "from: use --response accuracy, or another --reference"
            )
        return margin

    def _gates(self, plan: Plan) -> NDArray[np.float32]:
        return self._ablation.gates(plan.masks)

    def _donor_index(self, plan: Plan) -> NDArray[np.intp]:
        """The donor of every row: seeded by mask and item, never the row's own item."""
        if self._ablation.kind != "resample":
            return np.zeros(len(plan), dtype=np.intp)
        keys = [zlib.crc32(np.packbits(mask).tobytes()) for mask in plan.masks]
        chosen = np.empty(len(plan), dtype=np.intp)
        for row, (mask, position) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            rng = np.random.default_rng([self._ablation.seed, keys[mask], int(position)])
            donor = int(rng.integers(len(self._donors)))
            if self._donors[donor] == position:
                donor = (donor + 1) % len(self._donors)
            chosen[row] = donor
        return chosen
