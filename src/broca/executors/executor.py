"""The executor: converts plans into jobs for a runner, and its answers into responses."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from broca.engine import Ablation, Answers, Engine, Job
from broca.errors import TaskUnusable
from broca.executors.ray import RayRunner
from broca.measurement import Measurement, Plan
from broca.tasks import Benchmark, Item, LogLikelihood, Margin, Output
from broca.tasks.code import run_code_ahead


@dataclass(eq=False)
class Executor:
    """Measures plans; it runs no model itself.

    Attributes:
        runner: Answers jobs: an engine of this process, or workers.
        bank: The items that plans refer to by position, each with the task that scores it.
        ablation: How components are ablated.
        donors: Position in the bank of every donor's item, for `resample`: no row gets a donor of
            its own item.
        donor_keys: Seed of every bank item's draws of donors; by default its position.
    """

    runner: Engine | RayRunner
    bank: Sequence[tuple[Benchmark, Item]]
    ablation: Ablation = field(default_factory=Ablation)
    donors: Sequence[int] = ()
    donor_keys: Sequence[int] | None = None
    _margins: dict[tuple[int, bool], Margin] = field(default_factory=dict, init=False)

    def place_of(self, row: int, plan: Plan) -> str:
        """Names the item of a row and what was ablated, for messages."""
        _, item = self.bank[plan.item_index[row]]
        ablated = int(plan.masks[plan.mask_index[row]].sum())
        return f"item {item.number} of task '{item.task}' with {ablated} components ablated"

    def refer(self, bank: Sequence[tuple[Benchmark, Item]]) -> None:
        """Replaces the bank by the same items whose tasks now know right answers."""
        self.bank = bank
        self._margins = {}

    def scores(self, plan: Plan, outputs: Sequence[tuple[Output, ...]]) -> NDArray[np.float64]:
        """Returns the tasks' metrics of outputs, row by row, negated if lower is better."""
        rows = [
            (*self.bank[position], output)
            for position, output in zip(plan.item_index, outputs, strict=True)
        ]
        run_code_ahead(partial(benchmark.score, item, output) for benchmark, item, output in rows)
        scores = [benchmark.score(item, output) for benchmark, item, output in rows]
        signs = [1.0 if benchmark.higher_is_better else -1.0 for benchmark, *_ in rows]
        return np.multiply(signs, scores)

    def rescored(self, plan: Plan) -> NDArray[np.bool_]:
        """Returns whether each row's task is scored by a function of the caller, `(rows,)`.

        The journal keeps outputs of such rows, not their scores, because it cannot distinguish two
        functions.
        """
        by_item = np.array([benchmark.rescored for benchmark, _ in self.bank], dtype=bool)
        return by_item[plan.item_index]

    def job(self, number: int, plan: Plan) -> Job:
        """Returns the rows of a plan for a runner.

        Raises:
            TaskUnusable: The response is a margin, and an item has no reference answer.
        """
        scale = self.ablation.scale if plan.scale is None else plan.scale
        gates = replace(self.ablation, scale=scale).gates(plan.masks)
        where = number, gates, plan.mask_index, self._donor_index(plan)
        positions = plan.item_index.tolist()
        if plan.gradients:
            return Job(*where, margins=tuple(self._margin(plan, place) for place in positions))
        plain = (plan.response or "accuracy") == "accuracy"
        by_item = {
            place: self.bank[place][1].requests if plain else self._margin(plan, place).requests
            for place in set(positions)
        }
        return Job(*where, tuple(by_item[place] for place in positions))

    def measurement(self, plan: Plan, answers: Answers) -> Measurement:
        """Turns answers to a plan's rows into their responses.

        Responses are the margin, its probability or match, or the task's metric, negated if lower
        is better.
        """
        response = plan.response or "accuracy"
        values, gradients, outputs = answers.values, answers.gradients, answers.outputs
        if response == "accuracy" and not plan.gradients:
            return Measurement(plan, self.scores(plan, outputs), outputs=outputs)
        margins = [self._margin(plan, position) for position in plan.item_index.tolist()]
        if values is None:
            likely = cast("tuple[tuple[LogLikelihood, ...], ...]", outputs)
            values = np.array([m.of_answers(row) for m, row in zip(margins, likely, strict=True)])
        if response in ("probability", "match"):
            pairs = list(zip(margins, values.tolist(), strict=True))
            values = np.array([margin.probability(value) for margin, value in pairs])
            if gradients is not None:
                slopes = [margin.slope(value) for margin, value in pairs]
                gradients = gradients * np.array(slopes, dtype=np.float32)[:, None]
        return Measurement(plan, values, gradients, None if plan.gradients else outputs)

    def _margin(self, plan: Plan, position: int) -> Margin:
        """Returns the margin of an item, computed once."""
        key = position, plan.response == "match"
        if key not in self._margins:
            benchmark, item = self.bank[position]
            margin = benchmark.margin(item)
            if margin is None:
                raise TaskUnusable(
                    f"item {item.number} of task '{benchmark.name}' has no answer for a margin: "
                    "use another `response` such as accuracy, or another `reference`"
                )
            self._margins[key] = margin.paired() if key[1] else margin
        return self._margins[key]

    def _donor_index(self, plan: Plan) -> NDArray[np.intp]:
        """Returns the donor of every row, drawn by its mask and item, from another item."""
        if not self.ablation.draws_donors:
            return np.zeros(len(plan), dtype=np.intp)
        keys = [zlib.crc32(np.packbits(mask).tobytes()) for mask in plan.masks]
        chosen = np.empty(len(plan), dtype=np.intp)
        for row, (mask, position) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            key = position if self.donor_keys is None else self.donor_keys[position]
            rng = np.random.default_rng([self.ablation.seed, keys[mask], key])
            chosen[row] = donor = int(rng.integers(len(self.donors)))
            while self.donors[chosen[row]] == position:
                chosen[row] = (chosen[row] + 1) % len(self.donors)
                if chosen[row] == donor:
                    break  # all donors are the item itself
        return chosen
