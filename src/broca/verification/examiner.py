"""Measures the evidence for a claim on a set of components."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.components import ComponentSet
from broca.engine import Ablation
from broca.measurement import Execute, Floats, Plan
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.verification import (
    AblationCheck,
    Controls,
    Member,
    Sample,
    TaskDrop,
    TaskFailures,
    TextChange,
    Verification,
)
from broca.tasks import Output
from broca.verification import failures as failing
from broca.verification.evidence import Evidence, Scope
from broca.verification.random_sets import ControlComparison
from broca.verification.statistics import holm, layer_matched, norm_matched
from broca.verification.trial import Places, Trial
from broca.verification.verdict import RELEVANT, judge, settled

Answer = Callable[[Plan], list[tuple[Output, ...]]]
"""Returns the model's answers in every row of a plan."""

Sets = Sequence[Sequence[int]]
"""Columns of sets of components."""

FEW = 50
"""Number of items under other kinds of ablation, which decide no verdict."""


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
    trial = trial.judged(before)
    drops = tuple(trial.drop(name, before[name], after[name]) for name in trial.names)
    judged = (trial.task, *trial.others)
    losses = np.array([trial.lost_skill(name, before[name], after[name]) for name in judged])
    off_target, specific = map(float, trial.specific(losses)) if trial.others else (None, None)
    return Verification(
        model=model, task=trial.task, heads=tuple(heads), drops=drops, seed=ablation.seed,
        ablation=AblationInfo(ablation.kind, ablation.scale),
        off_target_drop=off_target, specific_drop=specific, verdict=None,
    )  # fmt: skip


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
        read: Measures the change of the model's own text without a set of columns.
        spent: Returns the number of rows so far.
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
    read: Callable[[Sequence[int]], TextChange]
    spent: Callable[[], int]
    kinds: Mapping[str, Execute]
    scope: Scope

    def examine(
        self, heads: Sequence[str], *, report: Callable[[str], None], drops_idle: bool = False
    ) -> Verification:
        """Measures a set and gives the verdict.

        Args:
            heads: The set, most important first.
            report: Receives the current stage.
            drops_idle: Whether members that contribute nothing leave the set before the claim.
        """
        columns = self.components.columns(heads)
        report("verifying: each member")
        members, idle = self._members(columns)
        if drops_idle and idle:
            members = [line for line in members if line.needed]
            columns = [column for column in columns if column not in idle]
        dropped = tuple(self.components.names[c] for c in idle if c not in columns)
        heads = [self.components.names[column] for column in columns]
        report("verifying: the drops")
        found = self._evidence([[], columns], self.trial.places)
        before, after = found.scores(0), found.scores(1)
        plain = plain_verification(self.model, heads, self.ablation, self.trial, before, after)
        trial, scope = self.trial.judged(before), self.scope
        judging, found = replace(self, trial=trial), replace(found, trial=trial)
        claimed, *rest = (found.tested(name) for name in trial.names)
        # the claim is one hypothesis; the other tasks are a family of their own
        corrected = zip(rest, holm([drop.p or 0.0 for drop in rest]), strict=True)
        off_target, specific = found.contrast()
        members = self._beside(columns, members, found)
        report("verifying: the outputs")
        failures, samples = judging.outputs(columns, found)
        evidence = replace(
            plain,
            drops=(claimed, *(replace(drop, p_holm=p) for drop, p in corrected)),
            off_target_ci=_ends(off_target), specific_ci=_ends(specific), level=scope.level,
            members=tuple(members), dropped=dropped, failures=failures, samples=samples,
            text=self.read(columns),
        )  # fmt: skip
        few = trial.smaller(FEW)
        if specific and not settled(evidence):
            report("verifying: random sets")
            # rows of the claim's own kind of ablation are known
            later = 2 * trial.judged_items(few) * len(self.kinds.keys() - {self.ablation.kind})
            left = None if scope.rows is None else scope.rows - self.spent() - later
            evidence = replace(evidence, controls=judging._controls(columns, found, specific, left))
        checks = tuple(judging.check(kind, heads, few) for kind in self.kinds)
        evidence = replace(evidence, ablations=checks)
        return replace(evidence, verdict=judge(evidence))

    def drops_of(self, heads: Sequence[str], names: Sequence[str]) -> tuple[TaskDrop, ...]:
        """Measures the drops of some tasks without a set, with uncorrected p-values."""
        places = {name: self.trial.places[name] for name in names}
        found = self._evidence([[], self.components.columns(heads)], places)
        return tuple(found.tested(name) for name in names)

    def _responses(
        self, sets: Sets, places: Places, execute: Execute | None = None
    ) -> dict[str, Floats]:
        """Measures the responses without sets of columns, `(sets, items)` by task."""
        masks = designs.of_sets(sets, len(self.components))
        return self.trial.responses(execute or self.execute, masks, places)

    def _evidence(self, sets: Sets, places: Places, execute: Execute | None = None) -> Evidence:
        """Measures the evidence without sets of columns, of which the first is empty."""
        return Evidence(self.trial, self.scope, self._responses(sets, places, execute))

    def _controls(
        self, columns: Sequence[int], found: Evidence, real: Interval, rows: int | None
    ) -> tuple[Controls, ...]:
        """Compares the set, of which the specific drop is known, with random sets on some items."""
        scope, trial = self.scope, self.trial
        subset = trial.smaller(scope.control_items)
        if not scope.controls or not columns:
            return ()
        rng = np.random.default_rng([scope.seed, 3])
        places = {name: subset[name] for name in (trial.task, *trial.others)}
        for name in sorted(places, key=trial.number):
            # aggregations other than the mean know items by their places
            if trial.aggregation(name, found.responses[name][0]) is None:
                places[name] = rng.permutation(subset[name])
        count = scope.controls
        drawn = {"layers": layer_matched(self.components, columns, count=count, seed=scope.seed)}
        if self.norms is not None:
            kinds = [component.kind for component in self.components]
            drawn["norm"] = norm_matched(
                self.norms, columns, kinds=kinds, count=count, seed=scope.seed
            )
        compared = ControlComparison(found.on(places), real, places, self._responses, rows)
        return compared.controls(drawn, self.components)

    def _members(self, columns: Sequence[int]) -> tuple[list[Member], list[int]]:
        """Measures the contribution of each member.

        A member is ablated alone, and last of its set, which shows redundant heads.

        Returns:
            The members, and the columns of those that contribute nothing, if it can be excluded
            that the set costs 10 points less without them.
        """
        scope, task, count = self.scope, self.trial.task, len(columns)
        places = {task: self.trial.at_most(scope.member_items)[task]}
        single = [[column] for column in columns]
        rest = [[other for other in columns if other != column] for column in columns]
        own = self._evidence([[], columns, *single, *rest], places)

        def lost(after: int = 1, before: int = 0) -> tuple[Interval, float]:
            drop, _, p = own.compared(task, after, before=before)
            return drop, p if drop.value > 0 else 1.0  # a gain is no contribution

        pairs = [(lost(2 + n), lost(before=2 + count + n)) for n in range(count)]
        p_values = holm([min(1.0, 2 * min(p for _, p in pair)) for pair in pairs])
        members = []
        for column, ((alone, _), (restored, _)), p in zip(columns, pairs, p_values, strict=True):
            head = self.components.names[column]
            members.append(Member(head, alone, restored, p, needed=p <= scope.level))
        idle = [c for c, line in zip(columns, members, strict=True) if not line.needed]
        if not 0 < len(idle) < count:
            return members, []
        needed = [column for column in columns if column not in idle]
        together = self._evidence([needed, columns], places).drop(task)  # what the idle cost
        return members, idle if together.low <= 0 and together.high < RELEVANT else []

    def _beside(
        self, columns: Sequence[int], members: Sequence[Member], found: Evidence
    ) -> list[Member]:
        """Adds to the members what each alone costs the other tasks that can lose something.

        Args:
            columns: The set.
            members: Its members, in the same order.
            found: The evidence on all report items, of which the intact model's is used again.
        """
        few = self.trial.beside(self.scope.beside_items)
        places = {name: few[name] for name in few if name not in found.trial.at_chance}
        if not places or not columns:
            return list(members)
        intact, alone = found.on(places).responses, self._responses([[c] for c in columns], places)
        stacked = {name: np.vstack([intact[name][:1], alone[name]]) for name in places}
        evidence = replace(found, responses=stacked)
        return [
            replace(member, others={name: evidence.drop(name, number) for name in places})
            for number, member in enumerate(members, start=1)
        ]

    def outputs(
        self, columns: Sequence[int], found: Evidence
    ) -> tuple[tuple[TaskFailures, ...], tuple[Sample, ...]]:
        """Returns failure modes of every task's outputs, and some outputs of the task side by side.

        Args:
            columns: The set.
            found: The evidence on all report items, intact and without the set.
        """
        trial, failures = self.trial, []
        samples: tuple[Sample, ...] = ()
        if not self.scope.failure_items:
            return (), ()
        examined = trial.at_most(self.scope.failure_items)
        scores, intact = found.on(examined).responses, found.scores(0)
        masks = designs.of_sets([[], columns], len(self.components))
        for name, places in examined.items():
            benchmark = trial.benchmarks[name]
            items = [trial.items[position] for position in places]
            answers = self.answer(Plan.crossed(masks, places))
            before, after = answers[: len(places)], answers[len(places) :]
            can_fail = not trial.guesses(name, intact[name])
            failures.append(
                failing.failures(
                    name, items, before, after, scores[name],
                    aggregate=trial.aggregation(name, scores[name][0]),
                    chance=benchmark.chance, can_fail=can_fail,
                )
            )  # fmt: skip
            if name == trial.task:
                samples = failing.samples(items, before, after, scores[name], benchmark.choices)
        return tuple(failures), samples

    def check(self, kind: str, heads: Sequence[str], subset: Places) -> AblationCheck:
        """Measures the drops alone, under a kind of ablation on some of the items."""
        task, columns = self.trial.task, self.components.columns(heads)
        places = {name: subset[name] for name in (task, *self.trial.others)}
        found = self._evidence([[], columns], places, self.kinds[kind])
        (drop, _, p), (_, specific) = found.compared(task), found.contrast()
        survives = drop.low > 0 and (specific is None or specific.low > 0)
        return AblationCheck(kind, drop, specific, p, survives)


def fitting(
    trial: Trial, scope: Scope, rows: int, *, members: int, kinds: int = 0
) -> tuple[Scope, int]:
    """Returns the scope with as many items as fit into some rows, and its largest number of rows.

    The latter exceeds these only if the fewest items of everything need more.

    Args:
        trial: The tasks and their report items.
        scope: Which tests are made.
        rows: The rows.
        members: Number of components of the set.
        kinds: Number of other kinds of ablation under which the claim is tested.
    """
    size = rows
    while True:
        smaller = replace(scope.within(size, members=members, tasks=len(trial.names)), rows=rows)
        most = most_rows(trial, smaller, members=members, kinds=kinds)
        if most <= rows or not size:
            return smaller, most
        size = 9 * size // 10


def most_rows(trial: Trial, scope: Scope, *, members: int, kinds: int = 0) -> int:
    """Returns the largest number of rows that a verification measures; see `fitting`."""
    every, outputs = (
        sum(map(len, places.values()))
        for places in (trial.places, trial.at_most(scope.failure_items))
    )
    few, compared, whole = map(
        trial.judged_items, (trial.smaller(FEW), trial.smaller(scope.control_items), trial.places)
    )
    # tasks at chance leave their share to the other tasks
    few = min(whole, max(few, 2 * FEW * bool(trial.others)))
    fixed = (
        2 * (every + outputs)
        + len(trial.at_most(scope.member_items)[trial.task]) * (2 * members + 1)
        + sum(map(len, trial.beside(scope.beside_items).values())) * members
        + 2 * few * kinds
    )
    most = fixed + 2 * scope.controls * compared
    return most if scope.rows is None else max(fixed, min(most, scope.rows))


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
