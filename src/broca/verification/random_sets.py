"""Compares a set with random sets, of which only close ones are measured on many items."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from broca.components import ComponentSet
from broca.measurement import Floats, Ints
from broca.results.base import Interval
from broca.results.verification import Controls, ControlSet
from broca.verification.evidence import SCREEN, Evidence
from broca.verification.statistics import behind, contrast_ends, standing
from broca.verification.trial import Places

Measure = Callable[[Sequence[Sequence[int]], Places], Mapping[str, Floats]]
"""Measures the responses without sets of columns, `(sets, items)` by task."""

_SURE = 2.0
"""Standard errors between a random set and the real set that decide the comparison."""

_SLACK = 0.02
"""Gain of the other tasks, in their metric, that a random set may have by noise."""

_LOOKS = 10
"""Divisor of the level at which a comparison ends before all random sets are measured."""

_WAVE = 5
"""Maximum number of random sets of each kind that are measured together."""


@dataclass(eq=False)
class _Drawn:
    """A random set with what is known of it.

    Attributes:
        columns: Its members.
        rows: Responses by task, intact, without the real set and without this one, `(3, items)`.
        reaches: Whether it is as specific as the real set; None if undecided.
    """

    columns: list[int]
    rows: dict[str, Floats] = field(default_factory=dict)
    reaches: bool | None = None


@dataclass(frozen=True, eq=False)
class ControlComparison:
    """The comparison of a set with random sets.

    The task's first items decide most random sets: those whose drop is far below the specific drop
    of the real set on all items. The others get more, then of the other tasks too, until they are
    decided. All ends when far more than 5 % of the sets of a kind reach the real set.

    Attributes:
        found: The evidence of the intact model and the real set.
        real: The specific drop of the real set on all report items.
        places: Items of the task and of the others, in the order in which they are measured.
        measure: Measures responses.
        rows: Maximum number of rows; None for no maximum.
    """

    found: Evidence
    real: Interval
    places: Places
    measure: Measure
    rows: int | None

    def controls(self, drawn: Mapping[str, Ints], components: ComponentSet) -> tuple[Controls, ...]:
        """Returns the random sets of every kind, as many as the verdict needs.

        Args:
            drawn: Columns of the random sets by kind, `(sets, size)`.
            components: All components.
        """
        sets: dict[str, list[_Drawn]] = {kind: [] for kind in drawn if len(drawn[kind])}
        most, left = max(map(len, drawn.values()), default=0), self.rows
        whole = len(sets) * sum(map(len, self.places.values()))  # a random set of every kind
        start, size = 0, _WAVE
        while start < most and (size := _WAVE if left is None else min(_WAVE, left // whole)) > 0:
            wave = {
                kind: list(map(_Drawn, drawn[kind][start : start + size].tolist())) for kind in sets
            }
            spent = self._decide([random_set for kind in wave for random_set in wave[kind]])
            left = None if left is None else left - spent
            sets = {kind: [*sets[kind], *wave[kind]] for kind in sets}
            reached = {kind: sum(bool(one.reaches) for one in of) for kind, of in sets.items()}
            level = self.found.scope.level  # of repeated looks, only the last is at `level`
            if any(behind(reached[kind], len(sets[kind]), level, looks=_LOOKS) for kind in sets):
                break
            start += size
        return tuple(self._described(kind, of, components) for kind, of in sets.items() if of)

    def _decide(self, close: Sequence[_Drawn]) -> int:
        """Measures random sets block by block until they are decided; returns the rows."""
        found, trial, spent = self.found, self.found.trial, 0
        count, late = len(self.places[trial.task]), 2 * SCREEN
        weighs = [trial.aggregation(name, found.responses[name][0]) for name in self.places]
        # some of the items say little of a score that weighs them
        most = 0 if weighs[0] else late if any(weighs) else count
        ends = [end for end in (SCREEN, late, 2 * late) if end < count and end <= most]
        # the task's items alone decide most random sets
        for begin, end in pairwise([0, *ends, count]):
            others = begin * (begin > late), end * (end > late or end == count)
            block = {}
            for name, places in self.places.items():
                part = (begin, end) if name == trial.task else others
                first, last = (-(-len(places) * item // count) for item in part)
                if first < last:
                    block[name] = slice(first, last)
            asked = {name: self.places[name][part] for name, part in block.items()}
            spent += len(close) * sum(map(len, asked.values()))
            for name, values in self.measure([one.columns for one in close], asked).items():
                known = found.responses[name][:, block[name]]
                for random_set, of_set in zip(close, values, strict=True):
                    rows = np.vstack([known, of_set])
                    before = random_set.rows.get(name, rows[:, :0])
                    random_set.rows[name] = np.hstack([before, rows])
            for random_set in close:
                random_set.reaches = self._reaches(random_set, whole=end == count)
            if not (close := [random_set for random_set in close if random_set.reaches is None]):
                break
        return spent

    def _reaches(self, random_set: _Drawn, *, whole: bool) -> bool | None:
        """Returns whether a random set reaches the real set; None if it is close.

        If all items are measured, the values decide, and ties count against the real set.
        """
        if whole:
            real, own = (self._specific(random_set.rows, row) for row in (1, 2))
            return bool(own >= real - 1e-12)
        weights = [self.found.trial.weights.get(name, 1.0) for name in random_set.rows]
        task, *others = (rows[0] - rows[2] for rows in random_set.rows.values())
        own, half = contrast_ends(task, others, weights[1:], width=_SURE)
        ahead, half = self.real.value - own, math.hypot(half, (self.real.high - self.real.low) / 2)
        if not others:  # its specific drop is at most its drop
            return False if ahead - half > _SLACK else None
        return None if abs(ahead) <= half else ahead < 0

    def _specific(self, rows: Mapping[str, Floats], row: int) -> float:
        """Returns the specific drop without a set of the rows, and before it is known the drop."""
        evidence = replace(self.found, responses=rows)
        losses = np.array([evidence.lost_skill(name, row) for name in rows])
        return float(evidence.trial.specific(losses)[1] if len(rows) > 1 else losses[0])

    def _described(self, kind: str, sets: Sequence[_Drawn], components: ComponentSet) -> Controls:
        """Returns the random sets of a kind as results describe them."""
        trial = self.found.trial
        # a specific drop that was not needed is at most the drop
        at_most = np.array([self._specific(random_set.rows, 2) for random_set in sets])
        reached = [bool(random_set.reaches) for random_set in sets]
        return Controls(
            kind=kind,
            items=len(self.places[trial.task]),
            other_items=sum(len(self.places[name]) for name in trial.others),
            specific=standing(self._specific(self.found.responses, 1), at_most, reached),
            sets=tuple(
                ControlSet(
                    tuple(components.names[column] for column in random_set.columns),
                    trial.loss(trial.task, *random_set.rows[trial.task][[0, 2]]),
                    value if len(random_set.rows) > 1 else None,
                    random_set.rows[trial.task].shape[1],
                )
                for random_set, value in zip(sets, at_most.tolist(), strict=True)
            ),
        )
