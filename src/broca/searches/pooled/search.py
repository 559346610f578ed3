"""Pooled: the rows of all stages of a search update one posterior over all sets.

If effects are small and many, a stage that decides by its own few rows decides by noise. Every
stage therefore uses the rows of all earlier stages:

0. if the model has many components, a set grows by one at a time: the slopes of the gates with the
   set ablated name some, rows choose one, and further steps exchange a member; many rows grow
   several sets; what sets cost neutral text counts against them; if rows cannot tell all components
   apart, the slopes at the intact model name those that are searched;
1. a pilot finds the size of masks that costs about a third of the intact response, or the largest
   size if none costs anything;
2. a screen of random masks about that size, a fresh one for every row of the task, a part of them
   on the others too;
3. rounds of small sets that may be the best by all rows so far (Thompson sampling), or of the
   components that cost most in the screen if no set seems to be worth anything; each set on another
   item that the screen did not use, in the task's own metric;
4. the best sets of the posterior, and the components that cost most in the screen, are compared on
   the same items, and the better half is kept; the sets that grew meet the best of them;
5. if no set grew, each member of the winner is left out in turn, and members that
   do not add are removed; a component that costs the task much alone is added again if the set is
   worth no less with it.

The answer is one of three: found, nothing of `least` or more, not enough rows to tell. Without a
given budget, the search continues in the third case.
"""

import math
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist

import numpy as np

from broca.errors import BadInput
from broca.measurement import GRADIENT_ROW, Bools, Floats, Ints
from broca.recovery import make_recovery
from broca.recovery.uncertainty import additivity
from broca.results.localization import AnswerInfo
from broca.searches.method import Method
from broca.searches.pilot import MOST_MASKS, growing_size, pilot, spread_masks
from broca.searches.pooled.beliefs import Beliefs, Features, Outcome
from broca.searches.pooled.growth import grow_sets, steepest_first
from broca.searches.pooled.measurer import Losses, LossMeasurer, SetDrops
from broca.searches.problem import MANY, Problem, Ranking, Search

_ROWS_PER_TASK = 800
"""Rows for each measured task, the claimed task and the others, if no budget is given."""
_LEAST_ROWS = 3000
"""Minimum of these rows for all tasks together: fewer prove less than their verification costs."""
_GOING_ON = 4
"""Factor up to which a search without an answer extends its default budget."""
_FEWEST_ROWS = 300
"""Minimum number of rows without other tasks; twice as many with them, and as many again for every
20 others beyond 40, whose intact responses are measured too."""
_PER_COMPONENT = 60
"""Rows of the budget for each component. If there are more components, those of the largest slopes
are searched: fewer rows would not tell what each costs."""
_STEEP = 0.05
"""Share of the rows for the slopes at the intact model."""
_SCREEN = 0.45
"""Share of the rows for the screen."""
_ROUNDS = 0.35
"""Share of the rows for the rounds; the comparison of sets has the remaining rows."""
_NUMBER = 6
"""Maximum number of rounds; each updates the posterior."""
_ROUND = 100
"""Minimum number of rows of a round; fewer would not change the posterior."""
_FEW_SHARES = (0.1, 0.06)
"""The same shares where slopes name the components."""
_STEPS = 0.7
"""Share of the rows for the steps, where slopes name the components."""
_SHARED = 0.25
"""Share of the screen's masks that are measured on the others, whose mean has less noise."""
_SPREAD = 0.5
"""Half the range of the logarithm of mask sizes around the pilot's size."""
_SHORT = 20
"""Number of components of the short list: sets are proposed from them, with interactions."""
_HARMFUL = 8
"""Number of components of the short list that are chosen by what they cost the task in the screen,
whatever they cost the others."""
_COLUMNS = 256
"""Maximum number of components with a coefficient, those of largest estimated effect."""
_HOPE = 0.5
"""Number of standard errors that are added to an effect when the short list is chosen."""
_MEETING = 8
"""Number of sets that are compared on fresh items."""
_HEATS = 3
"""Number of heats of the comparison; each keeps the better half."""
_PART = 0.05
"""Share of the set's worth that each member must add."""
_SPECIFIC = 0.2
"""Share of a member's loss of the task that must be specific, so that noise does not decide about a
member that harms all tasks alike."""
_DOUBT = 0.25
"""Number of standard errors that are subtracted from a member's addition: more would remove weak
members that add, fewer would keep members that do not (experiments/LOG.md)."""
_LAST = 0.4
"""Share of the rows of the comparison in which the sets that grew meet the best other set."""
_TEXT = 0.2
"""Maximum share of these rows for neutral text."""
_MEMBERS = 0.5
"""Share of the rows of the comparison that is reserved for members."""
_LASTING = 0.25
"""Share of these rows for components that add nothing to the set but cost much alone."""
_CERTAIN = 1.645
"""Standard errors of a 90 % interval, by which the worth of a finding exceeds zero."""
_LIKELY = 1.0
"""Standard errors at the end of the budget, for sets that grew: few rows are left for them, and the
verification tests them on more items."""

_OFTEN = 0.9
"""Minimum probability that the others lose half of `least` without a universal component."""
_LEFT = 4
"""A search continues only if at least 1 / `_LEFT` of its budget is left."""
_JOINT = 0.5
"""Share of `least` that the screen's masks may lose beyond the sum of what their components cost
alone, if the answer is that there is nothing."""
_UNSURE = (
    "the search's rows make the set likely, not sure (above zero by one standard error, not by "
    f"{_CERTAIN}): more rows, or the verification, decide"
)
_DRAWS = 200
"""Number of draws of the posterior whose best sets show how stable the selection is."""
_FAR = 20
"""Factor of the measured rows above which the number of needed rows is not stated."""


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Finds the set whose ablation has the largest specific drop.

    Without a budget it measures 800 rows for each measured task, at least 3,000, and up to 3,200
    for each task if these do not give an answer.

    Attributes:
        cost: Minimum specific drop that each member of a set must add; a twentieth of the set's
            drop if that is more.
        least: Minimum specific drop of a finding.
        contrast: Weight of the others' mean drop. 1 looks for the largest specific drop, 0 for the
            largest drop of the task.
    """

    cost: float = 0.005
    least: float = 0.05
    contrast: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.cost < 1 or not 0 < self.least < 1:
            raise BadInput(
                f"pooled's cost and least are drops from 0 to 1, not {self.cost} and {self.least}"
            )
        if not 0 <= self.contrast < math.inf:
            raise BadInput(f"pooled's contrast must be 0 or more, not {self.contrast}")

    def most_rows(self, problem: Problem) -> int:
        """Returns the budget in rows, or four times the rows of a search without a budget."""
        usual = _GOING_ON * _ROWS_PER_TASK * (1 + len(problem.others))
        fewest = max(1 + bool(problem.others), len(problem.others) // 20)
        return problem.budget(usual, fewest=_FEWEST_ROWS * fewest)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Screens, proposes sets, decides on the answer, and ranks."""
        most = self.most_rows(problem)
        budget = most if problem.rows is not None else max(_LEAST_ROWS, most // _GOING_ON)
        grows = problem.differentiable and problem.components > MANY
        measurer = LossMeasurer(problem, budget, self.contrast, "match" if grows else "probability")
        yield from measurer.measure_intact("items", budget // 20)
        columns, steepest = np.arange(problem.components), np.zeros(0, dtype=np.intp)
        number = max(2 * problem.k, budget // _PER_COMPONENT)
        if grows:
            none = np.zeros(problem.components, dtype=bool)
            items = int(_STEEP * budget / GRADIENT_ROW / (2 if problem.others else 1))
            steepest = yield from steepest_first(measurer, none, max(4, items))
            columns = np.sort(steepest[:number])
        _, lost = yield from pilot(
            lambda masks: measurer.each_on_one(_among(columns, masks, problem), 0, "items"),
            len(columns), masks=min(MOST_MASKS, max(1, budget // 100)),
            rng=measurer.rng, intact=measurer.intact_level,
        )  # fmt: skip
        measurer.losses.clear()  # masks of any size give little evidence about small sets
        size = growing_size(lost, measurer.intact_level)
        search = _Search(self, measurer, size, columns, steepest)
        outcome = yield from search.spend(measurer.rows_left)
        while outcome.answer.says == "not enough rows":
            rows = min(measurer.rows, most - measurer.rows)
            if rows < budget // _LEFT:
                break
            measurer.budget = measurer.rows + rows
            outcome = yield from search.spend(rows)
        if outcome.likely:
            outcome = replace(outcome, answer=AnswerInfo("found"))
        return search.ranked(outcome)


class _Search:
    """A search and its posterior.

    Args:
        strategy: The options of the search.
        measurer: Measures the rows.
        size: Approximate number of components that a mask of the screen ablates.
        columns: The components that the screen ablates.
        steepest: All components, the largest slopes at the intact model first; empty if the screen
            ablates all.
    """

    def __init__(
        self, strategy: Pooled, measurer: LossMeasurer, size: int, columns: Ints, steepest: Ints
    ) -> None:
        components = measurer.problem.components
        self._strategy, self._measurer, self._size = strategy, measurer, size
        self._columns, self._steepest = columns, steepest
        self._grown = np.zeros((0, components), dtype=bool)  # sets that grew by steps
        self._beliefs = Beliefs(measurer, strategy.cost)
        self._harms: Floats = np.zeros((1, components))  # draws, by the screen alone

    @property
    def _screened(self) -> Losses:
        """The task's rows of the screen."""
        return self._measurer.losses["task", "items"]

    @property
    def _few(self) -> bool:
        """Whether the screen ablates only components of large slopes."""
        return len(self._columns) < self._beliefs.components

    @property
    def _searched(self) -> str:
        """How many components are searched."""
        searched, components = len(self._beliefs.features.columns), self._beliefs.components
        return (
            f"only {searched} of {components} components were searched, those whose gates change "
            "the answers most when they begin to close"
        )

    def spend(self, rows: int) -> Search[Outcome]:
        """Spends rows on a screen, on rounds and on the decision."""
        measurer, before = self._measurer, self._measurer.rows
        if "confirm" not in measurer.intact:
            yield from measurer.measure_intact("confirm", rows // 20)
        rows -= measurer.rows - before
        screen, rounds = _SCREEN, _ROUNDS
        if len(self._steepest):
            screen, rounds = _FEW_SHARES
            grown, tried = yield from grow_sets(measurer, int(_STEPS * rows), self._steepest)
            self._grown = np.unique(np.vstack([self._grown, grown]), axis=0)
            self._columns = np.union1d(self._columns, tried)
        yield from self._screen(int(screen * rows))
        yield from self._propose(int(rounds * rows))
        return (yield from self._settle())

    def _screen(self, rows: int) -> Search[None]:
        """Measures random masks, a new mask for every row of the task, and makes the short list."""
        measurer, problem = self._measurer, self._measurer.problem
        number = int(rows / (1 + _SHARED)) if problem.others else rows
        columns = self._columns
        masks = spread_masks(self._size, number, len(columns), measurer.rng, spread=_SPREAD)
        masks = _among(columns, masks, problem)
        shared = round(_SHARED * number) if problem.others else 0
        yield from measurer.each_on_one(masks, shared, "items")
        beliefs, screened = self._beliefs, self._screened
        if len(columns) > _COLUMNS:
            centered = screened.masks - screened.masks.mean(axis=0)
            moved = centered.T @ (screened.losses - screened.losses.mean())
            columns = np.argsort(-moved, kind="stable")[:_COLUMNS]
            columns = np.union1d(columns, np.flatnonzero(self._grown.any(axis=0)))
        beliefs.describe(Features(columns, columns[:0]))
        alone = beliefs.alone(columns)
        hoped = beliefs.values(alone) + _HOPE * beliefs.errors(alone)
        drawn = beliefs.harms()
        self._harms = np.full((len(drawn), problem.components), -np.inf)
        self._harms[:, columns] = drawn
        harmful = np.argsort(-drawn.mean(axis=0), kind="stable")[:_HARMFUL]
        hopeful = np.argsort(-hoped, kind="stable")
        listed = np.concatenate([harmful, hopeful[~np.isin(hopeful, harmful)]])[:_SHORT]
        short = np.union1d(columns[listed], np.flatnonzero(self._grown.any(axis=0)))
        beliefs.describe(Features(columns, short))

    def _most_harmful(self, harms: Floats) -> Bools:
        """Returns the sets of the k components that cost most, `(draws, components)`.

        Members that stand in for each other cost nothing in small sets. They cost the task in the
        large masks of the screen, where the others are ablated too.

        Args:
            harms: What each component costs in the screen, `(draws, components)`.
        """
        sets = np.zeros(harms.shape, dtype=bool)
        first = np.argsort(-harms, axis=1, kind="stable")[:, : self._measurer.problem.k]
        np.put_along_axis(sets, first, True, axis=1)
        return sets

    def _propose(self, rows: int) -> Search[None]:
        """Measures sets that may be the best, each on a fresh item of the task and of another.

        Where a draw from the posterior calls no set worth anything, a draw of the screen's effects
        chooses the set.
        """
        measurer, beliefs = self._measurer, self._beliefs
        rounds = min(_NUMBER, max(1, rows // _ROUND))
        for _ in range(rounds):
            share = beliefs.doubt_of_others()
            number = int(rows / rounds / (1 + share))
            sets = beliefs.propose(number)
            if len(self._grown):
                near = np.vstack([self._grown, *map(_each_left_out, self._grown)])
                sets[::4] = np.resize(near, sets[::4].shape)
            empty = ~sets.any(axis=1)  # an empty set gives no evidence
            sets[empty] = self._most_harmful(measurer.rng.choice(self._harms, int(empty.sum())))
            yield from measurer.each_on_one(sets, round(share * number), "confirm")
            beliefs.fit()

    def _settle(self) -> Search[Outcome]:
        """Compares the best sets on fresh items, and removes members that add nothing.

        It spends the remaining rows.
        """
        measurer, beliefs = self._measurer, self._beliefs
        sets = self._candidates()
        spare = int((_LAST if len(self._grown) else _MEMBERS) * measurer.rows_left)
        for heat in range(_HEATS):
            yield from self._meet(sets, (measurer.rows_left - spare) // (_HEATS - heat))
            better = np.argsort(-beliefs.values(sets), kind="stable")
            sets = sets[better[: (len(sets) + 1) // 2]]
        if len(self._grown):
            return (yield from self._last(sets[0]))
        outcome = self._outcome(sets[0])
        if not outcome.is_finding:  # the rows of its members are further evidence on the set
            yield from self._meet(sets[:1], measurer.rows_left)
            outcome = self._outcome(sets[0])
        if outcome.is_finding:
            members = yield from self._without_idle(outcome)
            members = yield from self._with_lasting(members)
            # the model has only pairs, and underestimates a set of which each member alone destroys
            # the task: the set is found by all rows, or by these
            met = yield from self._meet(members[None], measurer.rows_left)
            proven = met is not None and met.harmful(self._strategy.least, _CERTAIN)[0]
            settled = self._outcome(members, proven)
            outcome = settled if settled.is_finding else self._outcome(outcome.members)
        return outcome

    def _last(self, best: Bools) -> Search[Outcome]:
        """Compares the posterior's best set with the sets that grew, by the remaining rows alone.

        No member is removed: so few rows do not tell members that add little from idle ones, and
        the verification tests them on more items.
        """
        sets = np.unique(np.vstack([self._grown, best]), axis=0)
        measurer = self._measurer
        texts = int(_TEXT * measurer.rows_left) // (len(sets) + 1)
        broken = yield from measurer.broken(sets, texts)
        met = yield from self._meet(sets, measurer.rows_left)
        if met is None:
            return self._outcome(best)
        first, least = int((met.specific.mean(axis=1) - broken).argmax()), self._strategy.least
        outcome = self._outcome(sets[first], met.harmful(least, _CERTAIN)[first])
        likely = not outcome.is_finding and met.harmful(least, _LIKELY)[first]
        return replace(outcome, likely=bool(likely))

    def _candidates(self) -> Bools:
        """Returns the best sets of the posterior, and the most harmful set."""
        harmful = self._most_harmful(self._harms.mean(axis=0, keepdims=True))
        best = self._beliefs.candidates(_MEETING)
        further = harmful[~(harmful[:, None] == best).all(axis=2).any(axis=1)]
        return np.vstack([best[: _MEETING - len(further)], further])

    def _meet(self, sets: Bools, rows: int) -> Search[SetDrops | None]:
        """Measures sets on the same items, as many as the rows allow; None if they allow none."""
        measurer = self._measurer
        items = rows // (2 if measurer.problem.others else 1) // (len(sets) + 1)
        if items < 1:
            return None
        met: SetDrops = yield from measurer.crossed(sets, items)
        self._beliefs.fit()
        return met

    def _outcome(self, members: Bools, proven: bool = False) -> Outcome:
        """Returns the outcome with one of the three answers; `proven` sets are found."""
        beliefs, least = self._beliefs, self._strategy.least
        worth = float(beliefs.values(members[None])[0])
        error = float(beliefs.errors(members[None])[0])
        bound = max(worth + _CERTAIN * error, beliefs.bound())
        outcome = Outcome(AnswerInfo("found"), members, worth, error, bound, self._joint_loss())
        if proven or (worth > _CERTAIN * error and worth + _CERTAIN * error >= least):
            return outcome
        answer, hidden = AnswerInfo("nothing", bound), ""
        if bound > least:
            answer = AnswerInfo("not enough rows", bound, self._rows_needed(outcome))
        if outcome.joint > _JOINT * least:  # pairs do not bound the worth of such sets
            hidden = f"large masks cost up to {outcome.joint:.2f} more than their parts"
        elif self._few:
            hidden = self._searched
        if hidden:
            answer = AnswerInfo("not enough rows", None, answer.rows_needed)
        return replace(outcome, answer=answer, hidden=hidden)

    def _joint_loss(self) -> float:
        """Returns a bound of what the screen's masks lose beyond the sum of single components.

        The bound holds at 95 %. Members that stand in for each other cost nothing until all are
        ablated, and effects of components and pairs cannot bound their worth. But such a set costs
        the large masks that contain it, or much of it.
        """
        beliefs, masks = self._beliefs, self._screened.masks
        alone = beliefs.of_single(beliefs.posterior.task)
        sums = alone @ masks[:, beliefs.features.columns].mean(axis=0)
        return float(np.quantile(self._screened.losses.mean() - sums, 0.95))

    def _rows_needed(self, outcome: Outcome) -> int | None:
        """Returns the number of rows that brings the bound down to `least`, or None if too large.

        Errors decrease with the root of the number of rows.
        """
        least, spent = self._strategy.least, self._measurer.rows
        worth = min(max(outcome.worth, 0.0), 0.75 * least)
        ratio = max(1.0, (outcome.bound - worth) / (least - worth))
        rows = math.ceil(spent * ratio**2 / 100) * 100
        return rows if rows <= _FAR * spent else None

    def _without_idle(self, outcome: Outcome) -> Search[Bools]:
        """Removes members that do not add more than their cost, or that harm all tasks alike.

        Every member is left out in turn, on the same items. Members are removed one by one, the
        smallest addition first.
        """
        members = outcome.members
        if members.sum() < 2:
            return members
        sets = np.vstack([members[None], _each_left_out(members)])
        met = yield from self._meet(sets, int((1 - _LASTING) * self._measurer.rows_left))
        corrections = np.zeros(len(members))
        if met is not None:
            corrections[members] = self._corrections(sets, met)
        beliefs, cost = self._beliefs, max(self._strategy.cost, _PART * outcome.worth)
        while members.sum() > 1:
            smaller = _each_left_out(members)
            adds, task = beliefs.additions(members[None], smaller)
            beyond = adds.mean(axis=0) + corrections[members] - _DOUBT * adds.std(axis=0)
            beyond -= np.maximum(cost, _SPECIFIC * task.mean(axis=0))
            if beyond.min() >= 0:
                break
            members = smaller[int(np.argmin(beyond))]
        return members

    def _corrections(self, sets: Bools, met: SetDrops) -> Floats:
        """Returns corrections of what the regression expects each member to add, `(members,)`.

        The regression knows more rows, and most corrections are 0. But if measured sets lie further
        from it than the error of these rows, and a member adds significantly less or more on them,
        the correction leads to the closest addition that they permit.

        Args:
            sets: The set, then the set without each member.
            met: Their rows, on the same items.
        """
        expected = self._beliefs.additions(sets[:1], sets[1:])[0].mean(axis=0)
        gains = met.specific[0] - met.specific[1:]
        errors, measured = met.errors(gains), gains.mean(axis=1)
        half = _certain_of_all(len(gains)) * errors
        permitted = np.clip(expected, measured - half, measured + half)
        misfits = math.sqrt(2) * self._beliefs.deviations.spread > errors
        return np.where(misfits, permitted - expected, 0.0)

    def _with_lasting(self, members: Bools) -> Search[Bools]:
        """Adds components that significantly cost the task much alone, up to k members.

        If ablating a component already destroys the task, a second component adds nothing although
        the task needs it too. Such components are added together, unless the larger set is worth
        less.
        """
        beliefs, measurer, least = self._beliefs, self._measurer, self._strategy.least
        short = beliefs.features.short
        costs, _ = beliefs.additions(beliefs.alone(short), np.zeros((1, len(members)), dtype=bool))
        at_least = costs.mean(axis=0) - _certain_of_all(len(short)) * costs.std(axis=0)
        larger = members.copy()
        for place in np.argsort(-costs.mean(axis=0), kind="stable"):
            if at_least[place] >= least / 2 and larger.sum() < measurer.problem.k:
                larger[short[place]] = True
        sets = np.unique(np.stack([larger, members]), axis=0)
        met = yield from self._meet(sets, measurer.rows_left // 2)
        if met is None or len(sets) == 1:
            return members
        gains = met.specific[1] - met.specific[0]  # the larger set comes second
        error = float(met.errors(gains[None])[0])
        return larger if gains.mean() >= -max(self._strategy.cost, error) else members

    def ranked(self, outcome: Outcome) -> Ranking:
        """Ranks components by the task's loss without each alone, the selected components first."""
        beliefs, measurer, strategy = self._beliefs, self._measurer, self._strategy
        components, columns = beliefs.components, beliefs.features.columns
        effects, halves, others = np.zeros((3, components))
        needed = np.zeros(components, dtype=bool)
        posterior, of_single = beliefs.posterior, beliefs.of_single
        effects[columns] = -of_single(posterior.task.mean(axis=0))
        halves[columns] = _CERTAIN * of_single(posterior.task).std(axis=0)
        drawn = of_single(posterior.others)
        others[columns] = -drawn.mean(axis=0)
        frequency, half = beliefs.propose(_DRAWS).mean(axis=0), strategy.least / 2
        needed[columns] = (drawn >= half).mean(axis=0) >= _OFTEN
        shown = beliefs.by_rows_of("others")
        if len(shown):  # what rows do not tell apart counts as theirs
            needed[columns] &= (shown >= half).mean(axis=0) >= 0.5
        contrast = np.argsort(effects - measurer.weight * others, kind="stable")
        inside = (outcome.members & outcome.is_finding)[contrast]
        selected = tuple(contrast[inside].tolist())
        universal = np.argsort(others, kind="stable")
        universal = universal[needed[universal] & ~np.isin(universal, selected)]
        options = {
            "rows": measurer.rows, **asdict(strategy), "share": self._size / len(self._columns),
            "response": measurer.response, "worth": outcome.worth, "worth_error": outcome.error,
            "bound": outcome.bound, "joint_loss": outcome.joint,
        }  # fmt: skip
        masks, losses = self._screened.masks, self._screened.losses
        lasso = make_recovery("non-positive")
        return Ranking(
            effects, (*selected, *contrast[~inside].tolist()), selected, outcome.reason, options,
            intervals=np.stack([effects - halves, effects + halves], axis=1),
            frequency=frequency, others=others, universal=tuple(universal.tolist()),
            notes=(*[self._searched] * self._few, *[_UNSURE] * outcome.likely),
            additivity=additivity(masks, -losses, lasso, seed=measurer.problem.seed),
            answer=outcome.answer,
        )  # fmt: skip


def _certain_of_all(number: int) -> float:
    """Returns the standard errors of bounds of which all hold at 95 % (Bonferroni correction)."""
    return NormalDist().inv_cdf(1 - 0.05 / number)


def _each_left_out(members: Bools) -> Bools:
    """Returns the set without each of its members in turn, `(members, components)`."""
    smaller: Bools = members & (np.flatnonzero(members)[:, None] != np.arange(len(members)))
    return smaller


METHOD = Method(
    name="pooled", make=Pooled, response="probability", measures_others=True,
    measures="random groups, then sets that may be the best, all rows in one regression",
    answers="which set this task needs and the others do not, many weak heads or few strong ones",
    rows="800 for each task measured, at least 3,000",
)  # fmt: skip


def _among(columns: Ints, masks: Bools, problem: Problem) -> Bools:
    """Returns masks of some components as masks of all."""
    wide = np.zeros((len(masks), problem.components), dtype=bool)
    wide[:, columns] = masks
    return wide
