"""Runs plans in this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from broca.engine import Engine
from broca.plan import Measurement, Plan
from broca.tasks import Benchmark, Item, Request


class LocalExecutor:
    """Measures the rows of plans with an engine of this process.

    Args:
        engine: Runs the requests.
        bank: The items that plans refer to by position, each with the task that scores it.
    """

    def __init__(self, engine: Engine, bank: Sequence[tuple[Benchmark, Item]]) -> None:
        self._engine = engine
        self._bank = tuple(bank)
        self.rows = 0
        """Rows measured so far."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan.

        Returns:
            The responses: the task's metric, negated where lower is better.
        """
        requests: list[Request] = []
        gate_index: list[int] = []
        spans: list[tuple[int, int]] = []
        for mask, position in zip(plan.mask_index, plan.item_index, strict=True):
            _, item = self._bank[position]
            spans.append((len(requests), len(requests) + len(item.requests)))
            requests += item.requests
            gate_index += [int(mask)] * len(item.requests)
        outputs = self._engine.run(
            requests, (~plan.masks).astype(np.float32), np.asarray(gate_index, dtype=np.intp)
        )
        responses = np.empty(len(plan))
        for row, (position, (start, end)) in enumerate(zip(plan.item_index, spans, strict=True)):
            benchmark, item = self._bank[position]
            score = benchmark.score(item, outputs[start:end])
            responses[row] = score if benchmark.higher_is_better else -score
        self.rows += len(plan)
        return Measurement(plan, responses)
