"""Runs plans in this process."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from broca.engine import Ablation, Engine
from broca.errors import BadLogits, TaskUnusable
from broca.plan import Measurement, Plan, Response
from broca.tasks import Benchmark, Item, LogLikelihood, Margin, Output, Request
from broca.tasks.code import run_code_ahead


class LocalExecutor:
    """Measures the rows of plans with an engine of this process.

    Args:
        engine: Runs the requests.
        bank: The items that plans refer to by position, each with the task that scores it.
        response: What plans return that do not say it themselves.
        ablation: What becomes of ablated components.
        donors: Positions in the bank of the items whose activations the engine's donors are, for
            `resample`: no row gets its own item's.
        donor_keys: Seed of every bank item's draws of donors; its position if None.
        keep_outputs: Whether to hand over what the model answered.
    """

    def __init__(
        self,
        engine: Engine,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        response: Response = "accuracy",
        ablation: Ablation | None = None,
        donors: Sequence[int] = (),
        donor_keys: Sequence[int] | None = None,
        keep_outputs: bool = False,
    ) -> None:
        self._engine = engine
        self._bank = tuple(bank)
        self._response = response
        self._ablation = ablation or Ablation()
        self._donors = tuple(donors)
        self._donor_keys = tuple(range(len(self._bank)) if donor_keys is None else donor_keys)
        self._keep_outputs = keep_outputs
        self.rows = 0
        """Rows measured so far; a row with its gradient counts as three."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan.

        Returns:
            The responses: the margin or its probability, or the task's metric, negated where
            lower is better.

        Raises:
            TaskUnusable: Margins are wanted, and an item has no answer to compare with.
        """
        response = plan.response or self._response
        if plan.gradients:
            margins = [self._margin(position) for position in plan.item_index]
            try:
                values, gradients = self._engine.differentiate(
                    margins, self._gates(plan), plan.mask_index, self._donor_index(plan)
                )
            except BadLogits as error:
                raise self._named(error, plan, error.request) from error
            if response == "probability":
                pairs = list(zip(margins, values.tolist(), strict=True))
                slopes = np.array([one.slope(value) for one, value in pairs], dtype=np.float32)
                gradients = gradients * slopes[:, None]
                values = np.array([one.probability(value) for one, value in pairs])
            self.rows += plan.cost
            return Measurement(plan, values, gradients)
        by_item = {
            position: self._bank[position][1].requests
            if response == "accuracy"
            else self._margin(position).requests
            for position in set(plan.item_index.tolist())
        }
        asked = self._ask(plan, by_item)
        if response == "accuracy":
            run_code_ahead(
                partial(self._bank[position][0].score, self._bank[position][1], answers)
                for position, answers in zip(plan.item_index, asked, strict=True)
            )
        responses = np.empty(len(plan))
        for row, (position, answers) in enumerate(zip(plan.item_index, asked, strict=True)):
            benchmark, item = self._bank[position]
            if response == "accuracy":
                score = benchmark.score(item, answers)
                responses[row] = score if benchmark.higher_is_better else -score
                continue
            margin = self._margin(position)
            value = margin.of_answers(cast("tuple[LogLikelihood, ...]", answers))
            responses[row] = margin.probability(value) if response == "probability" else value
        self.rows += plan.cost
        return Measurement(plan, responses, outputs=tuple(asked) if self._keep_outputs else None)

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, to its item's own requests."""
        by_item = {
            position: self._bank[position][1].requests for position in set(plan.item_index.tolist())
        }
        answers = self._ask(plan, by_item)
        self.rows += plan.cost
        return answers

    def _ask(
        self, plan: Plan, by_item: Mapping[int, tuple[Request, ...]]
    ) -> list[tuple[Output, ...]]:
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
        return [tuple(outputs[start:end]) for start, end in spans]

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
        if plan.scale is None:
            return self._ablation.gates(plan.masks)
        return replace(self._ablation, scale=plan.scale).gates(plan.masks)

    def _donor_index(self, plan: Plan) -> NDArray[np.intp]:
        """The donor of every row: seeded by its mask and item, never the item's own."""
        if self._ablation.kind != "resample":
            return np.zeros(len(plan), dtype=np.intp)
        keys = [zlib.crc32(np.packbits(mask).tobytes()) for mask in plan.masks]
        chosen = np.empty(len(plan), dtype=np.intp)
        for row, (mask, position) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            key = self._donor_keys[position]
            rng = np.random.default_rng([self._ablation.seed, keys[mask], key])
            donor = int(rng.integers(len(self._donors)))
            if self._donors[donor] == position:
                donor = (donor + 1) % len(self._donors)
            chosen[row] = donor
        return chosen
