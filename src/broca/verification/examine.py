"""Measures the evidence for a claim on a set of heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from broca.components import ComponentSet
from broca.measurement import Execute, Plan
from broca.results.base import Interval
from broca.results.verification import (
    AblationCheck,
    Controls,
    ControlSet,
    Curve,
    CurvePoint,
    Member,
    Sample,
    TaskFailures,
    Verdict,
)
from broca.tasks import Item, Output
from broca.verification import failures as failing
from broca.verification.controls import CONTROLS, layer_matched, norm_matched, standing
from broca.verification.drops import MeasuredDrop
from broca.verification.statistics import (
    Values,
    bootstrap_drops,
    bootstrap_interval,
    holm,
    interval_of,
    paired_test,
)
from broca.verification.trial import Places, Trial
from broca.verification.verdict import judge

Answer = Callable[[Plan], list[tuple[Output, ...]]]
"""Returns the model's answers in every row of a plan."""

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


@dataclass(frozen=True)
class Examination:
    """The measurements of a set and the verdict: the parts of a `Verification`."""

    drops: tuple[MeasuredDrop, ...]
    off_target: Interval | None
    specific: Interval | None
    controls: tuple[Controls, ...]
    members: tuple[Member, ...]
    curve: Curve | None
    ablations: tuple[AblationCheck, ...]
    failures: tuple[TaskFailures, ...]
    samples: tuple[Sample, ...]
    verdict: Verdict

    @property
    def before(self) -> dict[str, float]:
        """Score of every task on the intact model."""
        return {drop.task: drop.before for drop in self.drops}

    @property
    def after(self) -> dict[str, float]:
        """Score of every task with the set ablated."""
        return {drop.task: drop.after for drop in self.drops}


@dataclass(frozen=True)
class _MemberScores:
    """Responses to some items of the claimed task, which give the contributions of members.

    Attributes:
        places: The items, positions in the bank, `(items,)`.
        intact: Responses of the intact model, `(items,)`.
        ablated: Responses with the set ablated, `(items,)`.
        alone: Responses with only each member ablated, `(members, items)`.
        restored: Responses with all members except each ablated, `(members, items)`.
    """

    places: NDArray[np.intp]
    intact: Values
    ablated: Values
    alone: Values
    restored: Values


@dataclass(frozen=True)
class Examiner:
    """Measures sets of components on the report items of a trial.

    Attributes:
        trial: Tasks and their items.
        components: All components of the model.
        execute: Measures a plan under the ablation of the claim.
        answer: Returns answers under the ablation of the claim.
        items: The items of the bank, by position.
        norms: Mean output norm of every component; None if components have no norms.
        kinds: Measures plans under each kind of ablation that is tested.
        scope: The size of the verification.
    """

    trial: Trial
    components: ComponentSet
    execute: Execute
    answer: Answer
    items: Sequence[Item]
    norms: NDArray[np.floating] | None
    kinds: Mapping[str, Execute]
    scope: Scope

    def examine(
        self, heads: Sequence[str], *, order: Sequence[str] = (), report: Callable[[str], None]
    ) -> Examination:
        """Measures a set and gives the verdict.

        Args:
            heads: The set, most important first.
            order: Heads in the order in which the curve ablates them; `heads` if empty.
            report: Receives the current stage.
        """
        columns = self.components.columns(heads)
        scope, trial = self.scope, self.trial
        report("verifying: the drops")
        measured = trial.responses(self.execute, self._masks([[], columns]), trial.places)
        drops = self._drops(measured)
        off_target, specific = self._contrast(measured)
        subset = trial.smaller(scope.control_items or len(trial.places[trial.task]))
        on_subset = self._picked(measured, subset)
        report("verifying: random sets")
        controls = self._controls(columns, subset, on_subset)
        report("verifying: each member")
        scores = self._member_scores(columns, measured)
        elsewhere = self._elsewhere(columns, subset, on_subset)
        members = self._members(columns, scores, elsewhere)
        report("verifying: the outputs")
        failures, samples = self.outputs(columns, measured)
        if scope.failure_items and scope.changes:
            members = tuple(
                self._with_changes(number, member, columns, scores)
                for number, member in enumerate(members)
            )
        curve = None
        if scope.curve:
            report("verifying: k from 0 on")
            curve = self._curve(self.components.columns(order or heads), subset)
        ablations = tuple(
            self._ablation(kind, execute, columns, subset) for kind, execute in self.kinds.items()
        )
        verdict = judge(
            drops, off_target, specific, controls, members, failures, heads=heads, level=scope.level
        )
        return Examination(
            drops, off_target, specific, controls, members, curve, ablations, failures, samples,
            verdict,
        )  # fmt: skip

    def drops_of(self, heads: Sequence[str], names: Sequence[str]) -> tuple[MeasuredDrop, ...]:
        """Measures the drops of some tasks without a set, with uncorrected p-values."""
        columns = self.components.columns(heads)
        places = {name: self.trial.places[name] for name in names}
        measured = self.trial.responses(self.execute, self._masks([[], columns]), places)
        return tuple(self._drop(name, *measured[name]) for name in names)

    def _masks(self, sets: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
        """Returns masks that ablate sets of columns, `(sets, components)`."""
        masks = np.zeros((len(sets), len(self.components)), dtype=bool)
        for mask, columns in zip(masks, sets, strict=True):
            mask[list(columns)] = True
        return masks

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

    def _drops(self, measured: Mapping[str, Values]) -> tuple[MeasuredDrop, ...]:
        drops = [self._drop(name, *measured[name]) for name in self.trial.names]
        # the claim is one hypothesis; the other tasks are a family of their own
        adjusted = [drops[0].p, *holm([drop.p for drop in drops[1:]])]
        return tuple(replace(drop, p_holm=p) for drop, p in zip(drops, adjusted, strict=True))

    def _drop(self, name: str, before: Values, after: Values) -> MeasuredDrop:
        test, p = paired_test(before, after, seed=self.scope.seed)
        return MeasuredDrop(
            task=name,
            role=self.trial.role(name),
            metric=self.trial.benchmarks[name].metric,
            items=len(before),
            before=self.trial.score(name, before),
            after=self.trial.score(name, after),
            drop=self._interval(name, before, after),
            test=test,
            p=p,
            p_holm=p,
            chance=self.trial.chance(name),
        )

    def _contrast(self, measured: Mapping[str, Values]) -> tuple[Interval | None, Interval | None]:
        """Returns the off-target drop and the specific drop; each task is resampled by itself."""
        if not self.trial.others:
            return None, None
        losses, draws = self._resampled((self.trial.task, *self.trial.others), measured)
        off_target, off_target_draws = float(np.mean(losses[1:])), np.mean(draws[1:], axis=0)
        return (
            interval_of(off_target, off_target_draws, level=self.scope.level),
            interval_of(
                losses[0] - off_target, draws[0] - off_target_draws, level=self.scope.level
            ),
        )

    def _resampled(
        self, names: Sequence[str], measured: Mapping[str, Values]
    ) -> tuple[list[float], list[Values]]:
        """Returns the drop of every task, and its drops on resampled items."""
        losses, draws = [], []
        for number, name in enumerate(names):
            before, after = measured[name]
            draws.append(
                bootstrap_drops(
                    before,
                    after,
                    resamples=self.scope.resamples,
                    seed=[self.scope.seed, number],
                    aggregate=self.trial.aggregation(name, before),
                )
            )
            losses.append(self.trial.loss(name, before, after))
        return losses, draws

    def _controls(
        self, columns: Sequence[int], subset: Places, on_subset: Mapping[str, Values]
    ) -> tuple[Controls, ...]:
        """Compares the set with random sets on a subset of the items."""
        scope, trial = self.scope, self.trial
        if not scope.controls or not columns:
            return ()
        measured_on = {name: subset[name] for name in (trial.task, *trial.others)}
        real = {name: trial.loss(name, *on_subset[name]) for name in measured_on}
        drop = real[trial.task]
        mean = float(np.mean([real[name] for name in trial.others])) if trial.others else 0.0
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
            losses, off_target = self._losses(sets[: scope.controls], on_subset, measured_on)
            # more random sets than one reach the real set: further sets cannot make it significant
            last = scope.level * (len(sets) + 1)
            if standing(drop, losses).rank <= last or (
                standing(drop - mean, losses - off_target).rank <= last
            ):
                more = self._losses(sets[scope.controls :], on_subset, measured_on)
                losses, off_target = np.append(losses, more[0]), np.append(off_target, more[1])
            specifics = losses - off_target if trial.others else None
            controls.append(
                Controls(
                    kind=kind,
                    items=len(subset[trial.task]),
                    other_items=sum(len(subset[name]) for name in trial.others),
                    drop=standing(drop, losses),
                    specific=None if specifics is None else standing(drop - mean, specifics),
                    sets=tuple(
                        ControlSet(
                            tuple(self.components.names[column] for column in members),
                            float(losses[number]),
                            None if specifics is None else float(specifics[number]),
                        )
                        for number, members in enumerate(sets[: len(losses)])
                    ),
                )
            )
        return tuple(controls)

    def _losses(
        self, sets: NDArray[np.intp], on_subset: Mapping[str, Values], places: Places
    ) -> tuple[Values, Values]:
        """Returns mean losses of the task and of the others without sets, each `(sets,)`."""
        if len(sets) == 0:
            return np.empty(0), np.empty(0)
        trial = self.trial
        ablated = trial.responses(self.execute, self._masks(sets.tolist()), places)
        losses = {
            name: np.array([trial.loss(name, on_subset[name][0], row) for row in rows])
            for name, rows in ablated.items()
        }
        others = [losses[name] for name in trial.others]
        return losses[trial.task], np.mean(others, axis=0) if others else np.zeros(len(sets))

    def _member_scores(
        self, columns: Sequence[int], measured: Mapping[str, Values]
    ) -> _MemberScores:
        """Measures each member alone, and the set without it, which shows redundant heads."""
        trial, name = self.trial, self.trial.task
        places = trial.smaller(self.scope.member_items or len(trial.places[name]), names=[name])
        before, after = self._picked(measured, places)[name]
        if len(columns) < 2:
            alone, restored = (np.tile(row, (len(columns), 1)) for row in (after, before))
        else:
            single = [[column] for column in columns]
            others = [_without(columns, column) for column in columns]
            rows = trial.responses(self.execute, self._masks([*single, *others]), places)[name]
            alone, restored = rows[: len(columns)], rows[len(columns) :]
        return _MemberScores(places[name], before, after, alone, restored)

    def _members(
        self,
        columns: Sequence[int],
        scores: _MemberScores,
        elsewhere: Sequence[dict[str, Interval]],
    ) -> tuple[Member, ...]:
        """Returns the contribution of each member, with its drops of the other tasks."""
        pairs = [
            ((scores.intact, alone), (restored, scores.ablated))
            for alone, restored in zip(scores.alone, scores.restored, strict=True)
        ]
        p_values = [
            min(paired_test(*values, seed=self.scope.seed)[1] for values in pair) for pair in pairs
        ]
        adjusted = holm([min(1.0, 2 * p) for p in p_values])
        members = []
        for column, pair, p, drops in zip(columns, pairs, adjusted, elsewhere, strict=True):
            alone, restored = (self._interval(self.trial.task, *values) for values in pair)
            needed = p <= self.scope.level and max(alone.value, restored.value) > 0
            name = self.components.names[column]
            members.append(Member(name, alone, restored, p, needed, elsewhere=drops))
        return tuple(members)

    def _elsewhere(
        self, columns: Sequence[int], subset: Places, on_subset: Mapping[str, Values]
    ) -> list[dict[str, Interval]]:
        """Returns for each member the drops of the other tasks without it alone."""
        places = {name: subset[name] for name in self.trial.names if name != self.trial.task}
        if not places or not columns:
            return [{} for _ in columns]
        if len(columns) == 1:
            alone = {name: on_subset[name][1:] for name in places}
        else:
            masks = self._masks([[column] for column in columns])
            alone = self.trial.responses(self.execute, masks, places)
        return [
            {
                name: self._interval(name, on_subset[name][0], rows[number])
                for name, rows in alone.items()
            }
            for number in range(len(columns))
        ]

    def _with_changes(
        self, number: int, member: Member, columns: Sequence[int], scores: _MemberScores
    ) -> Member:
        """Adds to a member outputs whose score it changes, alone or with the rest of the set."""
        state: Literal["intact", "ablated"] = "intact"
        others: list[int] = []
        change = scores.alone[number] - scores.intact
        if not change.any():
            state, others = "ablated", _without(columns, columns[number])
            change = scores.ablated - scores.restored[number]
        # items whose outputs are known cost no rows; the largest losses come first
        examined = np.isin(
            scores.places, self.trial.at_most(self.scope.failure_items)[self.trial.task]
        )
        order = np.lexsort((change, ~examined))
        places = scores.places[order[change[order] != 0][: self.scope.changes]]
        if not len(places):
            return member
        masks = self._masks([others, [*others, columns[number]]])
        answers = self.answer(Plan.crossed(masks, places))
        items = [self.items[position] for position in places]
        changes = failing.samples(items, answers[: len(places)], answers[len(places) :])
        return replace(member, changes=changes, other_members=state)

    def outputs(
        self, columns: Sequence[int], measured: Mapping[str, Values]
    ) -> tuple[tuple[TaskFailures, ...], tuple[Sample, ...]]:
        """Returns failure modes of every task's outputs, and some outputs of the task side by side.

        Args:
            columns: The set.
            measured: Responses of every task to its report items, intact and ablated.
        """
        trial, task_failures = self.trial, []
        samples: tuple[Sample, ...] = ()
        if not self.scope.failure_items:
            return (), ()
        masks = self._masks([[], columns])
        examined = trial.at_most(self.scope.failure_items)
        scores = self._picked(measured, examined)
        for name, places in examined.items():
            benchmark = trial.benchmarks[name]
            answers = self.answer(Plan.crossed(masks, places))
            before, after = answers[: len(places)], answers[len(places) :]
            items = [self.items[position] for position in places]
            task_failures.append(
                failing.failures(
                    name,
                    items,
                    before,
                    after,
                    scores[name],
                    chance=benchmark.chance,
                    can_fail=not benchmark.at_chance(
                        trial.score(name, measured[name][0]), items=len(measured[name][0])
                    ),
                )
            )
            if name == trial.task:
                count = self.scope.samples
                samples = failing.samples(items[:count], before[:count], after[:count])
        return tuple(task_failures), samples

    def _curve(self, columns: Sequence[int], subset: Places) -> Curve:
        trial, scope = self.trial, self.scope
        largest = min(scope.curve, len(columns))
        masks = self._masks([columns[:k] for k in range(largest + 1)])
        measured = trial.responses(self.execute, masks, subset)
        points = []
        for k in range(largest + 1):
            at = {name: np.stack([rows[0], rows[k]]) for name, rows in measured.items()}
            points.append(
                CurvePoint(
                    k=k,
                    head=self.components.names[columns[k - 1]] if k else None,
                    drop=self._interval(trial.task, *at[trial.task]),
                    same_skill=self._mean_drop(at, trial.same_skill),
                    others=self._mean_drop(at, trial.others),
                )
            )
        return Curve(tuple(points), self._flat_at(measured[trial.task]))

    def _mean_drop(self, measured: Mapping[str, Values], names: Sequence[str]) -> Interval | None:
        if not names:
            return None
        if len(names) == 1:
            return self._interval(names[0], *measured[names[0]])
        losses, draws = self._resampled(names, measured)
        return interval_of(float(np.mean(losses)), np.mean(draws, axis=0), level=self.scope.level)

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
        measured = trial.responses(execute, self._masks([[], columns]), places)
        before, after = measured[trial.task]
        drop = self._interval(trial.task, before, after)
        _, specific = self._contrast(measured)
        _, p = paired_test(before, after, seed=self.scope.seed)
        return AblationCheck(
            kind=kind,
            drop=drop,
            specific=specific,
            p=p,
            survives=drop.low > 0 and (specific is None or specific.low > 0),
        )


def _without(columns: Sequence[int], column: int) -> list[int]:
    return [other for other in columns if other != column]
