"""A candidate for the default search: gradients propose sets, rows decide.

1. The intact model is the first anchor: a set that is measured on some items of the task and of the
   others, with the gradients of the responses (see `broca.searches.anchors`).
2. All anchors together predict the worth of every set. The sets of largest predicted worth with one
   member more than the last anchor, or with another member, race on fresh items in the task's own
   metric, and the winner becomes the next anchor. Effects that show only when others are ablated,
   such as those of backups, show at these anchors.
3. Where the first sets that gradients propose do no harm, or there are no gradients, `pooled`
   spends the other rows.
4. The best sets are compared on items that no anchor used, in the task's own metric; the better
   half is kept. Each member of the winner is left out in turn, and members that do not add leave.

The answer is one of three: found, nothing of `least` or more, not enough rows to tell. Without a
given budget, the search continues in the third case.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from broca.errors import BadInput
from broca.measurement import Bools, Floats, Ints, Measurement, Plan, Response
from broca.results.localization import AnswerInfo
from broca.searches.method import Method
from broca.searches.pooled import Pooled
from broca.searches.problem import OtherTask, Problem, Ranking, Search
from candidates.anchors import Anchor, Anchors, log_odds, logistic, targets, variance_of

_ROWS_PER_TASK, _USUAL_ROWS = 800, 3000
"""Rows for each measured task if no budget is given, and the most of them in all."""
_GOING_ON = 4
"""Factor up to which a search without an answer extends its default budget."""
_FEWEST_ROWS = 200
"""Minimum number of rows without other tasks; twice as many with them."""
_DECISION = 0.2
"""Share of the rows for the comparison of sets."""
_MEMBERS = 0.3
"""Share of these rows for the members of the winner."""
_ITEMS = 0.55
"""Items of the task at an anchor, times the root of the budget; as many of the others."""
_FIRST = 1.6
"""The same at the intact model, as a multiple."""
_RACING = 8
"""Number of sets in a race."""
_RACE = 5.0
"""Rows of a race, times the items of an anchor."""
_TRIED, _HARM = 2, 1.0
"""Number of anchors after which gradients are given up if the mean worth of these sets is below so
many standard errors, and gradients of the intact model promised no finding: components that stand
in for each other have no slopes."""
_MEETING = 6
"""Number of sets that are compared."""
_DRAWS = 20
"""Draws of the best set, for the bound of its worth and the frequency of components."""
_CERTAIN = 1.645
"""Standard errors of a 90 % interval."""
_PART = 0.02
"""Share of the set's worth that each member must add."""
_DOUBT = 0.5
"""Standard errors above its estimate at which a member must still add too little to leave."""
_SLOPE_ERROR = 0.4
"""Error of a predicted effect, as a share of it."""
_FAR = 20
"""Factor of the measured rows above which the number of needed rows is not stated."""


@dataclass(frozen=True, kw_only=True)
class Guided:
    """Finds the set whose ablation has the largest specific drop.

    Without a budget it measures 800 rows for each measured task, at most 3,000, and up to four
    times as many if these do not give an answer.

    Attributes:
        cost: Minimum specific drop that each member of a set must add; a fiftieth of the set's
            drop if that is more.
        least: Minimum specific drop of a finding.
        contrast: Weight of the others' mean drop. 1 looks for the largest specific drop, 0 for the
            largest drop of the task.
    """

    cost: float = 0.01
    least: float = 0.05
    contrast: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.cost < 1 or not 0 < self.least < 1:
            raise BadInput(
                f"guided's cost and least are drops from 0 to 1, not {self.cost} and {self.least}"
            )
        if not 0 <= self.contrast < math.inf:
            raise BadInput(f"guided's contrast must be 0 or more, not {self.contrast}")

    def most_rows(self, problem: Problem) -> int:
        """Returns the budget in rows, or four times the rows of a search without a budget."""
        usual = min(_USUAL_ROWS, _ROWS_PER_TASK * (1 + len(problem.others)))
        return problem.budget(_GOING_ON * usual, fewest=_FEWEST_ROWS * (2 if problem.others else 1))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Anchors, compares sets, decides on the answer, and ranks."""
        most = self.most_rows(problem)
        budget = most // _GOING_ON if problem.rows is None else most
        search = _Search(self, problem, round(_ITEMS * math.sqrt(budget)))
        while problem.differentiable:
            outcome = yield from search.spend(budget)
            if outcome is None:
                break
            if outcome.answer.says != "not enough rows" or 2 * budget > most:
                return search.ranked(outcome)
            budget *= 2
        rest = replace(problem, rows=None if problem.rows is None else budget - search.rows)
        strategy = Pooled(least=self.least, contrast=self.contrast)
        return (yield from strategy.generate(rest))


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a search.

    Attributes:
        answer: The answer, one of three.
        members: The best set, `(components,)`.
        worth: Specific drop of the set.
        error: Standard error of the worth.
        bound: Upper bound, at 95 %, of the worth of the best set.
        frequency: Share of the draws whose best set has each component, `(components,)`.
    """

    answer: AnswerInfo
    members: Bools
    worth: float
    error: float
    bound: float
    frequency: Floats

    @property
    def reason(self) -> str:
        """Why nothing was selected; empty otherwise."""
        if self.answer.says == "found":
            return ""
        best = f"the best set costs the task {self.worth:.2f} +- {self.error:.2f} more than others"
        if self.answer.says == "nothing":
            return f"no specific harm: no set costs {self.bound:.2f} or more at 95 %, {best}"
        if self.answer.rows_needed is not None:
            best += f"; about {self.answer.rows_needed:,} rows would do"
        return f"not enough rows to tell: {best}"


class _Search:
    """A search: its rows so far, and what they tell.

    Args:
        strategy: The options of the search.
        problem: The problem that is solved.
        items: Number of the task's items at an anchor.
    """

    def __init__(self, strategy: Guided, problem: Problem, items: int) -> None:
        self.strategy, self.problem, self.items = strategy, problem, max(4, items)
        self.anchors = Anchors(problem.k, strategy.cost)
        self.rng = np.random.default_rng([problem.seed, 0x61DE])
        self.rows = 0
        self._promised = 0.0
        self._met: dict[bytes, tuple[float, float]] = {}
        self._none = np.zeros(problem.components, dtype=bool)
        self._intact: dict[tuple[int, str], float] = {}
        self._decks: dict[tuple[int, bool], list[int]] = {}
        self._turn = 0
        self._others = problem.others if strategy.contrast else ()

    def spend(self, budget: int) -> Search[_Outcome | None]:
        """Steps to larger and better sets, and decides; returns None if gradients do not help."""
        until = budget - int(_DECISION * (budget - self.rows))
        if not self.anchors.measured:
            yield from self._anchor(self._none, round(_FIRST * self.items))
            self._promised = self.anchors.worth(self.anchors.best(self._none))[0]
        while self._gradients_help() and self.rows + self._price() <= until:
            yield from self._step()
        if not self._gradients_help():
            return None
        return (yield from self._settle(budget))

    def _step(self) -> Search[None]:
        """Races the neighbors of the best set so far, and makes the winner an anchor."""
        first = self.anchors.measured[-1].members
        sets = self.anchors.neighbors(first, _RACING)
        if first.sum() == self.anchors.k:
            sets = np.vstack([first, sets[:-1]])
        winners = yield from self._race(sets, self._race_rows())
        if not self._is_anchor(winners[0]):
            yield from self._anchor(winners[0], self.items)

    def _is_anchor(self, members: Bools) -> bool:
        return any(not anchor.distance(members) for anchor in self.anchors.measured)

    def _race_rows(self) -> int:
        """Returns the rows of a race."""
        return round(_RACE * self.items) * (2 if self._others else 1)

    def _race(self, sets: Bools, rows: int) -> Search[Bools]:
        """Compares sets on fresh items; each heat keeps the better half. Returns the winner."""
        beliefs = np.array([self._belief(members) for members in sets])
        heats, before = max(1, math.ceil(math.log2(len(sets)))), self.rows
        for heat in range(heats):
            left = rows - (self.rows - before)
            beliefs = _updated(beliefs, *(yield from self._meet(sets, left // (heats - heat))))
            for members, belief in zip(sets, beliefs.tolist(), strict=True):
                self._met[members.tobytes()] = (belief[0], belief[1])
            better = np.argsort(-self._values(sets, beliefs), kind="stable")
            kept = better[: (len(sets) + 1) // 2] if heat < heats - 1 else better[:1]
            sets, beliefs = sets[kept], beliefs[kept]
        return sets

    def _belief(self, members: Bools) -> tuple[float, float]:
        """Returns the expected worth of a set and its variance, by all of its rows."""
        return self._met.get(members.tobytes()) or self.anchors.worth(members)

    def _gradients_help(self) -> bool:
        """Whether gradients promised or sets that they propose do harm, or too few were tried."""
        tried = [anchor for anchor in self.anchors.measured if anchor.members.any()]
        if len(tried) < _TRIED or self._promised >= self.strategy.least:
            return True
        worth, variance = self._belief(tried[-1].members)
        return worth > _HARM * math.sqrt(variance)

    def _price(self) -> int:
        """Returns the most rows of a step: a race, gradients and intact responses."""
        return self._race_rows() + 4 * self.items * (2 if self._others else 1)

    def _drawn(self, count: int, *, confirm: bool) -> tuple[Ints, Floats]:
        """Draws items of the task and as many of the others, in turn; none again before all.

        Returns:
            Positions in the bank, and weights of their losses in the worth.
        """
        tasks = (OtherTask("", self.problem.items, self.problem.confirm), *self._others)
        numbers = [0] * count
        for _ in range(count if self._others else 0):
            numbers.append(1 + self._turn % len(self._others))
            self._turn += 1
        places = []
        for number in numbers:
            deck = self._decks.setdefault((number, confirm), [])
            if not deck:
                task = tasks[number]
                pool = task.confirm_or_items if confirm else task.items
                deck += self.rng.permutation(pool).tolist()
            places.append(deck.pop())
        weights = np.full(len(places), 1 / count)
        weights[count:] *= -self.strategy.contrast
        return np.array(places, dtype=np.intp), weights

    def _intact_of(self, items: Ints, response: Response) -> Search[Floats]:
        """Returns the intact responses of items, which are measured once, `(items,)`."""
        known = self._intact
        new = [item for item in dict.fromkeys(items.tolist()) if (item, response) not in known]
        if new:
            plan = Plan.crossed(self._none[None], np.array(new), response=response)
            responses = (yield from self._ask(plan)).responses.tolist()
            known.update({(item, response): r for item, r in zip(new, responses, strict=True)})
        return np.array([known[item, response] for item in items.tolist()])

    def _anchor(self, members: Bools, count: int) -> Search[None]:
        """Measures a set with gradients on fresh items."""
        items, weights = self._drawn(count, confirm=False)
        rows = np.zeros(len(items), dtype=np.intp)
        plan = Plan(members[None], rows, items, gradients=True, response="probability")
        measured = yield from self._ask(plan)
        if not members.any():
            for item, response in zip(items.tolist(), measured.responses.tolist(), strict=True):
                self._intact[item, "probability"] = response
        intact = log_odds((yield from self._intact_of(items, "probability")))
        odds = log_odds(measured.responses)
        probability = logistic(odds)
        slopes = measured.slopes() / (probability * (1 - probability)).astype(np.float32)[:, None]
        self.anchors.add(Anchor(members, odds, slopes, intact, weights))

    def _ask(self, plan: Plan) -> Search[Measurement]:
        self.rows += plan.cost
        return (yield plan)

    def _settle(self, budget: int) -> Search[_Outcome]:
        """Compares the best sets on fresh items, and removes members that add nothing."""
        known, starts = self.anchors, [anchor.members for anchor in self.anchors.measured]
        drawn = [known.best(members) for members in starts]
        drawn += [known.best(self._none, self.rng) for _ in range(_DRAWS)]
        met = [np.frombuffer(members, dtype=bool) for members in self._met]
        sets = np.unique([members for members in (*drawn, *met) if members.any()], axis=0)
        frequency = np.mean(drawn, axis=0)
        if not len(sets):
            return self._outcome(self._none, 0.0, 0.0, frequency)
        beliefs = np.array([self._belief(members) for members in sets])
        best = np.argsort(-self._values(sets, beliefs), kind="stable")[:_MEETING]
        rows = int((1 - _MEMBERS) * (budget - self.rows))
        members = (yield from self._race(sets[best], rows))[0]
        worth, variance = self._belief(members)
        members = yield from self._without_idle(members, worth, budget - self.rows)
        return self._outcome(members, worth, math.sqrt(variance), frequency)

    def _values(self, sets: Bools, beliefs: Floats) -> Floats:
        """Returns the expected worth of sets minus the cost of their members, `(sets,)`."""
        values: Floats = beliefs[:, 0] - self.strategy.cost * sets.sum(axis=1)
        return values

    def _meet(self, sets: Bools, rows: int) -> Search[tuple[Floats, Floats]]:
        """Measures the worth of sets on the same fresh items, as many as the rows allow.

        Returns:
            Weighted losses `(sets, items)` whose sums are the worths, and the weights `(items,)`.
        """
        count = max(1, rows // (2 if self._others else 1) // (len(sets) + 1))
        items, weights = self._drawn(count, confirm=True)
        plan = Plan.crossed(np.vstack([self._none, sets]), items, response="accuracy")
        table = (yield from self._ask(plan)).responses.reshape(len(sets) + 1, -1)
        return weights * (table[0] - table[1:]), weights

    def _without_idle(self, members: Bools, worth: float, rows: int) -> Search[Bools]:
        """Removes members that do not add more than their cost."""
        inside = np.flatnonzero(members)
        if len(inside) < 2 or rows < 4 * (len(inside) + 2):
            return members
        smaller = np.repeat(members[None], len(inside), axis=0)
        smaller[np.arange(len(inside)), inside] = False
        losses, weights = yield from self._meet(np.vstack([members, smaller]), rows)
        expected, _ = self.anchors.worth(members)
        additions = np.array([expected - self.anchors.worth(other)[0] for other in smaller])
        prior = np.stack([additions, np.full(len(inside), self.anchors.error)], axis=1)
        adds, variances = _updated(prior, losses[0] - losses[1:], weights).T
        most = adds + _DOUBT * np.sqrt(variances)
        kept = members.copy()
        kept[inside[most < max(self.strategy.cost, _PART * worth)]] = False
        return kept if kept.any() else members

    def _outcome(self, members: Bools, worth: float, error: float, frequency: Floats) -> _Outcome:
        """Returns the outcome with one of the three answers."""
        least, bounds = self.strategy.least, [worth + _CERTAIN * error]
        for _ in range(_DRAWS):
            mean, variance = self.anchors.worth(self.anchors.best(self._none, self.rng))
            bounds.append(mean + _CERTAIN * math.sqrt(variance))
        bound = max(bounds[0], float(np.quantile(bounds[1:], 0.95)))
        answer = AnswerInfo("nothing", bound)
        if members.any() and worth > _CERTAIN * error and bounds[0] >= least:
            answer = AnswerInfo("found")
        elif bound > least:
            answer = AnswerInfo("not enough rows", bound, self._rows_needed(worth, bound))
        return _Outcome(answer, members, worth, error, bound, frequency)

    def _rows_needed(self, worth: float, bound: float) -> int | None:
        """Returns the number of rows that brings the bound down to `least`, or None if too large.

        Errors decrease with the root of the number of rows.
        """
        least = self.strategy.least
        reached = min(max(worth, 0.0), 0.75 * least)
        ratio = max(1.0, (bound - reached) / (least - reached))
        rows = math.ceil(self.rows * ratio**2 / 100) * 100
        return rows if rows <= _FAR * self.rows else None

    def ranked(self, outcome: _Outcome) -> Ranking:
        """Ranks components by what each costs alone, the selected components first."""
        strategy = self.strategy
        harm, half, others = self._alone()
        contrast = np.argsort(strategy.contrast * others[0] - harm, kind="stable")
        found = outcome.members if outcome.answer.says == "found" else self._none
        selected = contrast[found[contrast]]
        universal = np.argsort(-others[0], kind="stable")
        shared = others[0] - others[1] >= strategy.least / 2
        universal = universal[(shared & ~found)[universal]]
        options = {
            "rows": self.rows,
            "cost": strategy.cost,
            "least": strategy.least,
            "contrast": strategy.contrast,
            "anchors": len(self.anchors.measured),
            "trust": self.anchors.trust,
            "response": "probability",
            "worth": outcome.worth,
            "worth_error": outcome.error,
            "bound": outcome.bound,
        }
        return Ranking(
            -harm,
            (*selected.tolist(), *contrast[~found[contrast]].tolist()),
            tuple(selected.tolist()),
            outcome.reason,
            options,
            intervals=np.stack([-harm - half, half - harm], axis=1),
            frequency=outcome.frequency,
            others=-others[0],
            universal=tuple(universal.tolist()),
            answer=outcome.answer,
        )

    def _alone(self) -> tuple[Floats, Floats, Floats]:
        """Returns what each component costs alone.

        Returns:
            The task's loss `(components,)` and half its 90 % interval; the others' loss and half
            its interval, `(2, components)`.
        """
        none = np.zeros((2, len(self._none)))
        first = self.anchors.measured[0]
        moved = first.odds[:, None] - self.anchors.trust * first.slopes
        losses = logistic(first.intact)[:, None] - logistic(moved)
        task, *others = (_with_half(losses[rows]) for rows in targets(first.weights))
        return task[0], task[1], others[0] if others else none


def _updated(beliefs: Floats, losses: Floats, weights: Floats) -> Floats:
    """Returns beliefs in values, `(values, 2)` with means and variances, after more rows.

    Args:
        beliefs: Means and variances before, `(values, 2)`.
        losses: Weighted losses, `(values, rows)`, whose sums estimate the values.
        weights: Their weights, `(rows,)`.
    """
    before = 1 / np.maximum(beliefs[:, 1], 1e-9)
    after = 1 / variance_of(losses, weights)
    means = (beliefs[:, 0] * before + losses.sum(axis=1) * after) / (before + after)
    return np.stack([means, 1 / (before + after)], axis=1)


def _with_half(losses: Floats) -> Floats:
    """Returns mean losses and half their 90 % intervals, `(2, components)`."""
    mean = losses.mean(axis=0)
    errors = np.sqrt(losses.var(axis=0) / len(losses) + (_SLOPE_ERROR * mean) ** 2)
    return np.stack([mean, _CERTAIN * errors])


METHOD = Method(
    name="guided", make=Guided, response="probability", measures_others=True,
    measures="sets that gradients propose, with gradients again at these sets",
    answers="which set this task needs and the others do not, with few rows",
    rows="800 for each task measured, at most 3,000",
    source="first-order ablation saliency (attribution patching: Syed et al., arXiv 2310.10348), "
    "taken again at each proposed set",
)  # fmt: skip
