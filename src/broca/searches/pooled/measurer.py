"""Measures masks on a task and on others: plans, losses from the intact model, rows left."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from broca import designs
from broca.measurement import Bools, Floats, Ints, Plan, Response
from broca.results.verification import KNOWN
from broca.searches.problem import OtherTask, Problem, Search

ItemUse = Literal["items", "confirm", "steps"]
"""Items for the search, items for its decisions, or items of the search with the same sets each."""

_DOUBT = 30
"""Weight, in rows, of the prior that an item's response repeats under masks."""
_IMAGINED = 0.5
"""Standard deviation of a pseudo-item that is added to the measured items, because a few items may
agree by chance."""

_BORNE = 0.5
"""Nats per token that neutral text may lose: half of what breaks the model by the verdict. A few
sentences measure it, so that less would refuse heads that cost it 0.3 (experiments/LOG.md)."""
_EDGE = 1e-3
"""Probabilities are moved so far from 0 and 1 before their log-odds are taken."""


@dataclass(frozen=True)
class Losses:
    """Measured rows: their masks `(rows, components)`, losses and items, `(rows,)`."""

    masks: Bools
    losses: Floats
    items: Ints

    def joined(self, later: Losses) -> Losses:
        """Returns these rows and later ones."""
        return Losses(
            np.vstack([self.masks, later.masks]),
            np.concatenate([self.losses, later.losses]),
            np.concatenate([self.items, later.items]),
        )


@dataclass(frozen=True)
class SetDrops:
    """Drops of sets on the same rows.

    Attributes:
        task: Drops of the task, `(sets, rows)`.
        specific: Drops of the task minus the weighted drops of the others, `(sets, rows)`.
        items: The task's item of every row, `(rows,)`. If rows outnumber the items, items repeat,
            and a repeated item adds no evidence about other items.
    """

    task: Floats
    specific: Floats
    items: Ints

    def harmful(self, least: float, errors: float) -> Bools:
        """Whether each set costs the task `least`, and more than others by some standard errors."""
        variances, items = self._spread(self.specific)
        specific = self.specific.mean(axis=1) - errors * np.sqrt(variances / items) > 0
        harmful: Bools = (self.task.mean(axis=1) >= least) & specific
        return harmful

    def errors(self, drops: Floats) -> Floats:
        """Returns the standard errors of mean drops, `(sets,)`.

        A pseudo-item is added to the measured items, so that equal responses still have a variance.
        """
        variances, items = self._spread(drops)
        errors: Floats = np.sqrt((variances * items + _IMAGINED**2) / (items + 1) / items)
        return errors

    def _spread(self, drops: Floats) -> tuple[Floats, int]:
        """Returns the variance over items and their number; rows of an item are clustered.

        The estimate is cluster-robust: without repeated items it is the variance of rows; if the
        rows of an item agree, it is the variance of items; otherwise it lies between.
        """
        items = np.unique(self.items)
        rows = (self.items[:, None] == items).astype(float)
        sums = (drops - drops.mean(axis=1, keepdims=True)) @ rows
        return np.square(sums).sum(axis=1) * len(items) / drops.shape[1] ** 2, len(items)


class _Level:
    """Predicts an item's response under masks from its intact response.

    The prediction uses a share of the intact response: 1 for a deterministic response, 0 for noise,
    which would only be added by a subtraction. The share is the slope of the response under masks
    on the intact response, and 1 until it is known.

    Args:
        intact: Intact responses of a task's items.
    """

    def __init__(self, intact: Floats) -> None:
        self.mean, self._variance = float(intact.mean()), float(intact.var())
        self._rows, self._products = 0, 0.0

    def predict(self, intact: Floats, responses: Floats) -> Floats:
        """Predicts the responses of rows without an ablation, `(rows,)`."""
        self._rows += len(intact)
        self._products += float((intact - self.mean) @ (responses - responses.mean()))
        slope = 1.0
        if self._variance > 0:
            weight = self._rows / (self._rows + _DOUBT)
            slope += weight * (self._products / (self._rows * self._variance) - 1.0)
        predicted: Floats = self.mean + np.clip(slope, 0.0, 1.0) * (intact - self.mean)
        return predicted


class LossMeasurer:
    """Measures masks on the task and on the others, as losses from the intact model.

    Args:
        problem: The problem that is solved.
        budget: Maximum number of rows.
        weight: Weight of a drop of the others.
        of_others: Continuous response of the others in the screen and in the steps.

    Attributes:
        rows: Number of rows so far.
        losses: The measured rows, of `task` or of `others`, on each part of the items. The rows of
            a part have the same noise: those of `items` measure `response`, those of `confirm` the
            tasks' own metrics.
        intact: The intact model's responses to items of each part that was measured, by position
            in the bank; NaN for items that were not measured.
        rng: Generator of all random draws.
        response: Response of the task there; None for that of the run.
    """

    def __init__(self, problem: Problem, budget: int, weight: float, of_others: Response) -> None:
        self.problem, self.budget, self.weight = problem, budget, weight
        self.rows = 0
        self.losses: dict[tuple[str, ItemUse], Losses] = {}
        self.rng = np.random.default_rng([problem.seed, 0xF0C5])
        self.response: Response | None = "probability" if problem.continuous else None
        self._of_others = of_others if problem.continuous else None
        self.intact: dict[ItemUse, Floats] = {}
        self._levels: dict[str, _Level] = {}
        self._queues: dict[tuple[str, str], list[int]] = {}
        names = [other.name for other in problem.others]
        self._turns = itertools.cycle([*names[1:], *names[:1]])
        tasks = (OtherTask("", problem.items, problem.confirm), *problem.others)
        self._pools = {
            "items": {task.name: task.items for task in tasks},
            # those of the search if none were set aside
            "confirm": {t.name: t.confirm if len(t.confirm) else t.items for t in tasks},
        }

    @property
    def rows_left(self) -> int:
        """Number of rows of the budget that are not spent."""
        return self.budget - self.rows

    @property
    def intact_level(self) -> float:
        """Mean intact response of the task."""
        return self._levels[""].mean

    def measure_intact(self, part: ItemUse, rows: int) -> Search[None]:
        """Measures the intact model on items of each task, as many of the task as of all others.

        The effect of a mask differs between items, so that more rows on the same few items add
        little evidence about the task.

        Args:
            part: `items`, whose rows measure `response`, or `confirm`, whose rows measure the
                tasks' own metrics.
            rows: Maximum number of rows.
        """
        pools = {}
        for name, items in self._pools[part].items():
            shares = max(1, len(self._pools[part]) - 1) if name else 1
            pools[name] = self.rng.permutation(items)[: max(4, rows // (2 * shares))]
        self._pools["items" if part == "items" else "confirmed"] = pools
        items = np.concatenate(list(pools.values()))
        plan = Plan.crossed(designs.intact(self.problem.components), items)
        self.intact[part] = intact = np.full(items.max() + 1, np.nan)
        intact[items] = yield from self._ask(plan, part)
        if part == "items":
            self._levels = {name: _Level(intact[pool]) for name, pool in pools.items()}

    def each_on_one(self, masks: Bools, others: int, part: ItemUse) -> Search[Floats]:
        """Measures every mask on an item of the task, and the first masks on one of another task.

        Args:
            masks: The masks, `(masks, components)`.
            others: Number of first masks that are measured on the others, in turn.
            part: Part of the items; the intact model was measured on it.

        Returns:
            Drops `(masks + others,)`, first those of the task.
        """
        names = [""] * len(masks) + [next(self._turns) for _ in range(others)]
        index = np.concatenate([np.arange(len(masks)), np.arange(others)])
        items = self._next_items(names, "items" if part == "items" else "confirmed")
        responses = yield from self._ask(Plan(masks, index, items), part)
        expected = self.intact[part][items]
        if part == "items":
            tasks = np.array(names)
            for name in dict.fromkeys(names):
                rows = tasks == name
                expected[rows] = self._levels[name].predict(expected[rows], responses[rows])
        lost = expected - responses
        count = len(masks)
        self._add("task", part, masks, lost[:count], items[:count])
        if others:
            self._add("others", part, masks[:others], lost[count:], items[count:])
        return lost

    def slopes(self, mask: Bools, items: int) -> Search[tuple[Floats, Floats]]:
        """Measures the slopes of the log-odds of right answers in all gates, with a set ablated.

        Log-odds do not saturate where the model is sure.

        Args:
            mask: The set, `(components,)`.
            items: Number of items of the task, and of the others in turn.

        Returns:
            Mean slopes of the task and of the others, `(components,)` each; those of the others
            are 0 without other tasks. A component whose ablation harms has a positive slope.
        """
        drawn = self._next_pairs(items, "items")
        plan = replace(Plan.crossed(mask[None], drawn), gradients=True)
        self.rows += plan.cost
        slopes = np.zeros((len(plan), len(mask)))
        for rows, part in self._by_response(plan):
            measured = yield replace(part, response=part.response or "probability")
            sure = np.clip(measured.responses, _EDGE, 1 - _EDGE)
            slopes[rows] = self.problem.slopes(measured) / (sure * (1 - sure))[:, None]
        others = slopes[items:].mean(axis=0) if self.problem.others else np.zeros(len(mask))
        return slopes[:items].mean(axis=0), others

    def crossed(self, masks: Bools, items: int, part: ItemUse = "confirm") -> Search[SetDrops]:
        """Measures the drops of masks on the same items: fresh ones, in the tasks' own metrics.

        Args:
            masks: The masks, `(masks, components)`.
            items: Number of items of the task, and of the others in turn.
            part: `steps` for items on which the intact model was measured, and `response`.
        """
        if part == "steps":
            drawn, every = self._next_pairs(items, "items"), masks
        else:
            drawn = self._next_pairs(items, "confirm")
            every = np.vstack([designs.intact(masks.shape[1]), masks])
        responses = yield from self._ask(Plan.crossed(every, drawn), part)
        table = responses.reshape(len(every), -1)
        intact = self.intact["items"][drawn] if part == "steps" else table[0]
        lost = intact - table[-len(masks) :]
        task, others = lost[:, :items], lost[:, items:]
        rows = np.repeat(masks, items, axis=0)
        specific, met = task, np.tile(drawn[:items], len(masks))
        self._add("task", part, rows, task.ravel(), met)
        if self.problem.others:
            specific, met = task - self.weight * others, np.tile(drawn[items:], len(masks))
            self._add("others", part, rows, others.ravel(), met)
        return SetDrops(task, specific, drawn[:items])

    def broken(self, sets: Bools, texts: int) -> Search[Floats]:
        """Measures what sets cost neutral text beyond half of what breaks a model.

        A nat per token beyond it counts like a whole task.

        Args:
            sets: The sets, `(sets, components)`.
            texts: Maximum number of sentences.

        Returns:
            Nats per token, `(sets,)`; 0 without text, or if the intact model does not know it.
        """
        if not min(texts, len(self.problem.texts)):
            return np.zeros(len(sets))
        drawn = self.rng.permutation(self.problem.texts)[:texts]
        every = np.vstack([designs.intact(sets.shape[1]), sets])
        self.rows += len(every) * len(drawn)
        measured = yield Plan.crossed(every, drawn, response="margin")
        intact, *ablated = measured.mask_means()
        known = float(intact >= -np.log(KNOWN))
        lost: Floats = np.maximum(intact - np.array(ablated) - _BORNE, 0)
        return self.weight * known * lost

    def _add(self, target: str, part: ItemUse, masks: Bools, losses: Floats, items: Ints) -> None:
        new, before = Losses(masks, losses, items), self.losses.get((target, part))
        self.losses[target, part] = new if before is None else before.joined(new)

    def _ask(self, plan: Plan, part: ItemUse) -> Search[Floats]:
        self.rows += len(plan)
        if part == "confirm":
            return (yield replace(plan, response="accuracy")).responses
        responses = np.zeros(len(plan))
        for rows, some in self._by_response(plan):
            responses[rows] = (yield some).responses
        return responses

    def _by_response(self, plan: Plan) -> list[tuple[Bools, Plan]]:
        """Splits a plan by the continuous responses of its rows: which they are, and their plan."""
        own = np.isin(plan.item_index, self.problem.items)
        if self.response == self._of_others:
            own[:] = True
        return [
            (rows, replace(plan.part(rows), response=response))
            for rows, response in ((own, self.response), (~own, self._of_others))
            if rows.any()
        ]

    def _next_pairs(self, items: int, pool: str) -> Ints:
        """Returns the next items of the task, then as many of the others in turn if there are."""
        others = items if self.problem.others else 0
        return self._next_items([""] * items + [next(self._turns) for _ in range(others)], pool)

    def _next_items(self, names: list[str], pool: str) -> Ints:
        """Returns the next item of each named task; all items of a task are equally frequent."""
        items = []
        for name in names:
            queue = self._queues.setdefault((name, pool), [])
            if not queue:
                queue += self.rng.permutation(self._pools[pool][name]).tolist()
            items.append(queue.pop())
        return np.array(items, dtype=np.intp)
