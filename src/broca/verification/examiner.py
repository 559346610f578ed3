"""Measures the evidence for a claim on a set of components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from broca.components import ComponentSet
from broca.engine import Ablation
from broca.measurement import Execute, Plan
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.verification import (
    AblationCheck,
    Controls,
    ControlSet,
    Crossing,
    Curve,
    CurvePoint,
    Member,
    Sample,
    TaskDrop,
    TaskFailures,
    Verification,
)
from broca.tasks import Item, Output
from broca.verification import failures as failing
from broca.verification.statistics import (
    CONTROLS,
    Values,
    bootstrap_drops,
    bootstrap_interval,
    holm,
    interval_of,
    layer_matched,
    norm_matched,
    paired_test,
    standing,
)
from broca.verification.trial import Places, Trial
from broca.verification.verdict import judge

Answer = Callable[[Plan], list[tuple[Output, ...]]]
"""Returns the model's answers in every row of a plan."""

Sets = Sequence[Sequence[int]]
"""Columns of sets of components."""

Pair = tuple[tuple[Values, Values], tuple[Values, Values]]
"""Responses to the task's items before and after a member is ablated: alone, and last of its set,
which shows redundant heads."""

FLAT = 0.05
"""A curve is flat from the k beyond which no further head significantly costs more than this."""


@dataclass(frozen=True)
class Scope:
    """The size of a verification.

    Attributes:
        controls: Number of random sets of each kind. If at most one of them reaches the real set,
            they become `2 * controls - 1`; of 39 sets, one may reach it at the level of 5 %.
        control_items: Number of items of the task for each random set, and of all others together;
            None for all report items.
        member_items: Number of items of the task for each member's contribution; None for all.
            Drops of other tasks without a member are measured on `control_items`.
        curve: Largest k of the curve; 0 for no curve.
        failure_items: Number of items of each task whose outputs are examined; 0 for none.
        samples: Number of outputs that are shown side by side.
        changes: Number of changed outputs that are shown for each member.
        level: Level of tests and intervals.
        resamples: Number of bootstrap resamples.
        seed: Seed of controls and resampling.
    """

    controls: int = CONTROLS
    control_items: int | None = None
    member_items: int | None = None
    curve: int = 10
    failure_items: int = 100
    samples: int = 10
    changes: int = 3
    level: float = 0.05
    resamples: int = 2000
    seed: int = 0


QUICK = Scope(control_items=100, member_items=200, curve=0, failure_items=40)
"""The size of the verification at the end of a localization."""


def plain_verification(
    model: ModelInfo,
    heads: Sequence[str],
    ablation: Ablation,
    trial: Trial,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> Verification:
    """Returns the drops without a set, without statistics and without a verdict.

    Args:
        model: The model.
        heads: The set; empty if nothing was selected.
        ablation: The ablation; its seed is the seed of the verification.
        trial: The tasks and their report items.
        before: Score of every task on the intact model.
        after: Score of every task with the set ablated.
    """
    drops = tuple(trial.drop(name, before[name], after[name]) for name in trial.names)
    others = [line.drop for line in drops if line.role == "other"]
    off_target = float(np.mean(others)) if others else None
    return Verification(
        model=model,
        task=trial.task,
        heads=tuple(heads),
        ablation=AblationInfo(ablation.kind, ablation.scale),
        seed=ablation.seed,
        drops=drops,
        off_target_drop=off_target,
        specific_drop=drops[0].drop - (off_target or 0.0),
        verdict=None,
    )


@dataclass(frozen=True)
class Examiner:
    """Measures sets of components on the report items of a trial.

    Attributes:
        model: The model, as results describe it.
        ablation: The ablation of the claim.
        trial: Tasks and their items.
        components: All components of the model.
        execute: Measures a plan under the ablation of the claim.
        answer: Returns answers under the ablation of the claim.
        norms: Mean output norm of every component; None if components have no norms.
        kinds: Measures plans under each kind of ablation that is tested.
        scope: The size of the verification.
    """

    model: ModelInfo
    ablation: Ablation
    trial: Trial
    components: ComponentSet
    execute: Execute
    answer: Answer
    norms: NDArray[np.floating] | None
    kinds: Mapping[str, Execute]
    scope: Scope

    def examine(
        self, heads: Sequence[str], *, order: Sequence[str] = (), report: Callable[[str], None]
    ) -> Verification:
        """Measures a set and gives the verdict.

        Args:
            heads: The set, most important first.
            order: Heads in the order in which the curve ablates them; `heads` if empty.
            report: Receives the current stage.
        """
        columns = self.components.columns(heads)
        scope, trial = self.scope, self.trial
        report("verifying: the drops")
        measured = self._responses([[], columns], trial.places)
        before, after = (
            {name: trial.score(name, rows[row]) for name, rows in measured.items()}
            for row in range(2)
        )
        plain = plain_verification(self.model, heads, self.ablation, trial, before, after)
        claimed, *rest = (self._tested(name, *measured[name]) for name in trial.names)
        # the claim is one hypothesis; the other tasks are a family of their own
        corrected = zip(rest, holm([drop.p or 0.0 for drop in rest]), strict=True)
        drops = (claimed, *(replace(drop, p_holm=p) for drop, p in corrected))
        off_target, specific = self._contrast(measured)
        subset = trial.smaller(scope.control_items)
        on_subset = self._picked(measured, subset)
        report("verifying: random sets")
        controls = self._controls(columns, subset, on_subset)
        report("verifying: each member")
        members = self._members(columns, measured, subset, on_subset)
        report("verifying: the outputs")
        failures, samples = self.outputs(columns, measured)
        curve = None
        if scope.curve:
            report("verifying: k from 0 on")
            curve = self._curve(self.components.columns(order or heads), subset)
        return replace(
            plain,
            drops=drops,
            off_target_ci=_ends(off_target),
            specific_ci=_ends(specific),
            level=scope.level,
            controls=controls,
            members=members,
            curve=curve,
            ablations=tuple(
                self._ablation(kind, execute, columns, subset)
                for kind, execute in self.kinds.items()
            ),
            failures=failures,
            samples=samples,
            verdict=judge(
                drops, off_target, specific, controls, members, failures,
                heads=heads, level=scope.level,
            ),
        )  # fmt: skip

    def drops_of(self, heads: Sequence[str], names: Sequence[str]) -> tuple[TaskDrop, ...]:
        """Measures the drops of some tasks without a set, with uncorrected p-values."""
        places = {name: self.trial.places[name] for name in names}
        measured = self._responses([[], self.components.columns(heads)], places)
        return tuple(self._tested(name, *rows) for name, rows in measured.items())

    def _masks(self, sets: Sets) -> NDArray[np.bool_]:
        """Returns masks that ablate sets of columns, `(sets, components)`."""
        masks = np.zeros((len(sets), len(self.components)), dtype=bool)
        for mask, columns in zip(masks, sets, strict=True):
            mask[list(columns)] = True
        return masks

    def _responses(
        self, sets: Sets, places: Places, execute: Execute | None = None
    ) -> dict[str, Values]:
        """Measures the responses without sets of columns, `(sets, items)` by task."""
        return self.trial.responses(execute or self.execute, self._masks(sets), places)

    def _picked(self, measured: Mapping[str, Values], subset: Places) -> dict[str, Values]:
        """Returns the responses to a subset of the report items, `(masks, items)` by task."""
        return {
            name: measured[name].take(np.searchsorted(self.trial.places[name], places), axis=1)
            for name, places in subset.items()
        }

    def _interval(self, name: str, before: Values, after: Values) -> Interval:
        return bootstrap_interval(
            before,
            after,
            level=self.scope.level,
            resamples=self.scope.resamples,
            seed=self.scope.seed,
            aggregate=self.trial.aggregation(name, before),
        )

    def _tested(self, name: str, before: Values, after: Values) -> TaskDrop:
        """Returns the drop of a task with its interval and its uncorrected test."""
        trial = self.trial
        drop = trial.drop(name, trial.score(name, before), trial.score(name, after))
        interval = self._interval(name, before, after)
        test, p = paired_test(before, after, seed=self.scope.seed)
        return replace(drop, drop=interval.value, ci=_ends(interval), test=test, p=p, p_holm=p)

    def _resampled(
        self, names: Sequence[str], measured: Mapping[str, Values]
    ) -> tuple[Values, Values]:
        """Returns the drop of every task, `(tasks,)`, and on resampled items.

        Each task is resampled by itself.
        """
        losses = [self.trial.loss(name, *measured[name]) for name in names]
        draws = [
            bootstrap_drops(
                *measured[name],
                resamples=self.scope.resamples,
                seed=[self.scope.seed, number],
                aggregate=self.trial.aggregation(name, measured[name][0]),
            )
            for number, name in enumerate(names)
        ]
        return np.array(losses), np.array(draws)

    def _contrast(self, measured: Mapping[str, Values]) -> tuple[Interval | None, Interval | None]:
        """Returns the off-target drop and the specific drop from intact and ablated responses."""
        if not self.trial.others:
            return None, None
        losses, draws = self._resampled((self.trial.task, *self.trial.others), measured)
        off_target, off_target_draws = float(losses[1:].mean()), draws[1:].mean(axis=0)
        specific = float(losses[0]) - off_target
        return (
            interval_of(off_target, off_target_draws, level=self.scope.level),
            interval_of(specific, draws[0] - off_target_draws, level=self.scope.level),
        )

    def _controls(
        self, columns: Sequence[int], subset: Places, on_subset: Mapping[str, Values]
    ) -> tuple[Controls, ...]:
        """Compares the set with random sets on a subset of the items."""
        scope, trial = self.scope, self.trial
        if not scope.controls or not columns:
            return ()
        places = {name: subset[name] for name in (trial.task, *trial.others)}

        def losses(after: Mapping[str, Values]) -> Values:
            """Returns the losses of the task and of the others on average, `(2, sets)`."""
            by_task = [
                [trial.loss(name, on_subset[name][0], row) for row in after[name]]
                for name in places
            ]
            others = np.mean(by_task[1:], axis=0) if trial.others else np.zeros(len(by_task[0]))
            return np.array([by_task[0], others])

        (drop,), (mean,) = losses({name: on_subset[name][1:] for name in places})
        most = 2 * scope.controls - 1
        drawn = {"layers": layer_matched(self.components, columns, count=most, seed=scope.seed)}
        if self.norms is not None:
            kinds = [component.kind for component in self.components]
            drawn["norm"] = norm_matched(
                self.norms, columns, kinds=kinds, count=most, seed=scope.seed
            )
        controls = []
        for kind, sets in drawn.items():
            if len(sets) == 0:  # a set that leaves no component to draw, such as a whole layer
                continue
            lost = losses(self._responses(sets[: scope.controls].tolist(), places))
            # more random sets than one reach the real set: further sets cannot make it significant
            last = scope.level * (len(sets) + 1)
            ranks = standing(drop, lost[0]).rank, standing(drop - mean, lost[0] - lost[1]).rank
            if min(ranks) <= last and len(sets) > scope.controls:
                more = losses(self._responses(sets[scope.controls :].tolist(), places))
                lost = np.hstack([lost, more])
            drops, specifics = lost[0], lost[0] - lost[1] if trial.others else None
            controls.append(
                Controls(
                    kind=kind,
                    items=len(places[trial.task]),
                    other_items=sum(len(places[name]) for name in trial.others),
                    drop=standing(drop, drops),
                    specific=None if specifics is None else standing(drop - mean, specifics),
                    sets=tuple(
                        ControlSet(
                            tuple(self.components.names[column] for column in members),
                            float(drops[number]),
                            None if specifics is None else float(specifics[number]),
                        )
                        for number, members in enumerate(sets[: len(drops)])
                    ),
                )
            )
        return tuple(controls)

    def _members(
        self,
        columns: Sequence[int],
        measured: Mapping[str, Values],
        subset: Places,
        on_subset: Mapping[str, Values],
    ) -> tuple[Member, ...]:
        """Measures the contribution of each member, with some outputs that it changes."""
        scope, task = self.scope, self.trial.task
        places = {task: self.trial.at_most(scope.member_items)[task]}
        single = [[column] for column in columns]
        rest = [[other for other in columns if other != column] for column in columns]
        tables = np.split(self._responses([*single, *rest], places)[task], 2)
        intact, ablated = self._picked(measured, places)[task]
        pairs: list[Pair] = [
            ((intact, alone), (restored, ablated)) for alone, restored in zip(*tables, strict=True)
        ]
        p_values = holm(
            [
                min(1.0, 2 * min(paired_test(*values, seed=scope.seed)[1] for values in pair))
                for pair in pairs
            ]
        )
        others = {name: subset[name] for name in self.trial.names if name != task}
        elsewhere = self._responses(single, others) if others else {}
        members = []
        for number, (column, pair, p) in enumerate(zip(columns, pairs, p_values, strict=True)):
            alone, restored = (self._interval(task, *values) for values in pair)
            changes, state = self._changes(rest[number], column, places[task], pair)
            members.append(
                Member(
                    head=self.components.names[column],
                    alone=alone,
                    restored=restored,
                    p=p,
                    needed=p <= scope.level and max(alone.value, restored.value) > 0,
                    changes=changes,
                    other_members=state,
                    elsewhere={
                        name: self._interval(name, on_subset[name][0], rows[number])
                        for name, rows in elsewhere.items()
                    },
                )
            )
        return tuple(members)

    def _changes(
        self, rest: list[int], column: int, places: NDArray[np.intp], pair: Pair
    ) -> tuple[tuple[Sample, ...], Literal["intact", "ablated"]]:
        """Returns outputs whose score a member changes, and the state of the others in them.

        A member that changes none alone is shown with the rest of the set ablated.
        """
        scope = self.scope
        if not (scope.failure_items and scope.changes):
            return (), "intact"
        (intact, alone), (restored, ablated) = pair
        others, change = [], alone - intact
        if not change.any():
            others, change = rest, ablated - restored
        # items whose outputs are known cost no rows; the largest losses come first
        examined = np.isin(places, self.trial.at_most(scope.failure_items)[self.trial.task])
        order = np.lexsort((change, ~examined))
        chosen = places[order[change[order] != 0][: scope.changes]]
        if not len(chosen):
            return (), "intact"
        samples = failing.samples(*self._answers([others, [*others, column]], chosen))
        return samples, "ablated" if others else "intact"

    def _answers(
        self, sets: Sets, places: NDArray[np.intp]
    ) -> tuple[list[Item], failing.ItemOutputs, failing.ItemOutputs]:
        """Returns items and the answers to them without each of two sets."""
        answers = self.answer(Plan.crossed(self._masks(sets), places))
        items = [self.trial.items[position] for position in places]
        return items, answers[: len(places)], answers[len(places) :]

    def outputs(
        self, columns: Sequence[int], measured: Mapping[str, Values]
    ) -> tuple[tuple[TaskFailures, ...], tuple[Sample, ...]]:
        """Returns failure modes of every task's outputs, and some outputs of the task side by side.

        Args:
            columns: The set.
            measured: Responses of every task to its report items, intact and ablated.
        """
        trial, failures = self.trial, []
        samples: tuple[Sample, ...] = ()
        if not self.scope.failure_items:
            return (), ()
        examined = trial.at_most(self.scope.failure_items)
        scores = self._picked(measured, examined)
        for name, places in examined.items():
            benchmark, intact = trial.benchmarks[name], measured[name][0]
            items, before, after = self._answers([[], columns], places)
            can_fail = not benchmark.at_chance(trial.score(name, intact), items=len(intact))
            failures.append(
                failing.failures(
                    name, items, before, after, scores[name],
                    chance=benchmark.chance, can_fail=can_fail,
                )
            )  # fmt: skip
            if name == trial.task:
                count = self.scope.samples
                samples = failing.samples(items[:count], before[:count], after[:count])
        return tuple(failures), samples

    def _curve(self, columns: Sequence[int], subset: Places) -> Curve:
        trial = self.trial
        largest = min(self.scope.curve, len(columns))
        measured = self._responses([columns[:k] for k in range(largest + 1)], subset)
        points = []
        for k in range(largest + 1):
            at_k = {name: rows[[0, k]] for name, rows in measured.items()}
            points.append(
                CurvePoint(
                    k=k,
                    head=self.components.names[columns[k - 1]] if k else None,
                    drop=self._interval(trial.task, *at_k[trial.task]),
                    same_skill=self._mean_drop(at_k, trial.same_skill),
                    others=self._mean_drop(at_k, trial.others),
                )
            )
        return Curve(tuple(points), self._flat_at(measured[trial.task]))

    def _mean_drop(self, measured: Mapping[str, Values], names: Sequence[str]) -> Interval | None:
        if not names:
            return None
        if len(names) == 1:
            return self._interval(names[0], *measured[names[0]])
        losses, draws = self._resampled(names, measured)
        return interval_of(float(losses.mean()), draws.mean(axis=0), level=self.scope.level)

    def _flat_at(self, rows: Values) -> int:
        """Returns the first k beyond which no larger k significantly costs `FLAT` more."""
        for k in range(len(rows)):
            later = [self._interval(self.trial.task, rows[k], row) for row in rows[k + 1 :]]
            if not any(drop.value >= FLAT and drop.low > 0 for drop in later):
                return k
        return len(rows) - 1

    def _ablation(
        self, kind: str, execute: Execute, columns: Sequence[int], subset: Places
    ) -> AblationCheck:
        trial = self.trial
        places = {name: subset[name] for name in (trial.task, *trial.others)}
        measured = self._responses([[], columns], places, execute)
        drop = self._interval(trial.task, *measured[trial.task])
        _, specific = self._contrast(measured)
        _, p = paired_test(*measured[trial.task], seed=self.scope.seed)
        survives = drop.low > 0 and (specific is None or specific.low > 0)
        return AblationCheck(kind, drop, specific, p, survives)


def crossings_of(found_on: str, heads: Sequence[str], drops: Iterable[TaskDrop]) -> list[Crossing]:
    """Returns what a set that was claimed for a task costs other tasks, from tested drops."""
    return [
        Crossing(found_on, drop.task, tuple(heads), drop.interval, drop.p)
        for drop in drops
        if drop.interval is not None and drop.p is not None
    ]


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
