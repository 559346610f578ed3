"""Compares a set with random sets, of which only close ones are measured on many items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from broca.components import ComponentSet
from broca.measurement import Floats, Ints
from broca.results.verification import Controls, ControlSet
from broca.verification.evidence import SCREEN, Evidence
from broca.verification.statistics import Values, behind, contrast_ends, standing
from broca.verification.trial import Places

Measure = Callable[[Sequence[Sequence[int]], Places], Mapping[str, Floats]]
"""Measures the responses without sets of columns, `(sets, items)` by task."""

_BLOCKS = (SCREEN, 2 * SCREEN, 4 * SCREEN)
"""Numbers of the task's items after which a random set may be decided."""

_SURE = 2.0
"""Standard errors between a random set and the real set that decide the comparison."""

_SLACK = 0.02
"""Gain of the other tasks, in their metric, that a random set may have by noise."""

_WAVE = 5
"""Number of random sets of each kind that are measured together."""


@dataclass(eq=False)
class _Drawn:
    """A random set with what is known of it.

    Attributes:
        kind: How it was matched.
        columns: Its members.
        responses: Responses of the items so far, by task.
        reaches: Whether it is as specific as the real set, or costs as much without other tasks;
            None if undecided.
    """

    kind: str
    columns: list[int]
    responses: dict[str, Values] = field(default_factory=dict)
    reaches: bool | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of a set with random sets.

    The task's first items decide most random sets: those whose drop is far below the specific drop
    of the real set. The others get more items, of the other tasks too, until they are decided. A
    kind of matching ends when significantly more than 5 % of its sets reach the real set.

    Attributes:
        found: The evidence of the intact model and the real set.
        places: Items of the task and of the others, in the order in which they are measured.
        measure: Measures responses.
        rows: Maximum number of rows; None for no maximum.
    """

    found: Evidence
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
        most = max(map(len, drawn.values()), default=0)
        left, level = self.rows, self.found.scope.level
        whole = len(sets) * sum(map(len, self.places.values()))  # a random set of every kind
        start, size = 0, _WAVE
        while start < most and (size := _WAVE if left is None else min(_WAVE, left // whole)):
            wave = [
                _Drawn(kind, columns)
                for kind in sets
                for columns in drawn[kind][start : start + size].tolist()
            ]
            spent = self._decide(wave)
            left = None if left is None else left - spent
            for random_set in wave:
                sets[random_set.kind].append(random_set)
            reached = {kind: sum(bool(one.reaches) for one in of) for kind, of in sets.items()}
            if any(behind(reached[kind], len(of), level) for kind, of in sets.items()):
                break
            start += size
        return tuple(
            self._described(kind, of, len(drawn[kind]), components)
            for kind, of in sets.items()
            if of
        )

    def _decide(self, wave: Sequence[_Drawn]) -> int:
        """Measures random sets block by block until they are decided; returns the rows."""
        trial, spent, close = self.found.trial, 0, list(wave)
        count = len(self.places[trial.task])
        ends = [end for end in _BLOCKS if end < count and trial.others] + [count]
        if trial.aggregation(trial.task, self.found.responses[trial.task][0]) is not None:
            ends = [count]
        of_others = [0]
        for number, (begin, end) in enumerate(pairwise([0, *ends])):
            # the task's items alone decide most
            of_others.append(0 if number == 0 and end < count else end)
            block = {trial.task: self.places[trial.task][begin:end]}
            for name in trial.others:
                total = len(self.places[name])
                first, last = (-(-total * part // count) for part in of_others[-2:])
                if last > first:
                    block[name] = self.places[name][first:last]
            spent += len(close) * sum(map(len, block.values()))
            for name, rest in self.measure([one.columns for one in close], block).items():
                for random_set, values in zip(close, rest, strict=True):
                    before = random_set.responses.get(name, np.empty(0))
                    random_set.responses[name] = np.concatenate([before, values])
            for random_set in close:
                if end == count:
                    real, own = self._values(random_set)
                    random_set.reaches = bool(own[-1] >= real[-1] - 1e-12)
                else:
                    random_set.reaches = self._decided(random_set)
            close = [random_set for random_set in close if random_set.reaches is None]
            if not close:
                break
        return spent

    def _decided(self, random_set: _Drawn) -> bool | None:
        """Returns whether a random set surely reaches the real set; None if it is close."""
        trial = self.found.trial
        measured = [name for name in trial.others if name in random_set.responses]
        beyond = {
            name: random_set.responses[name] - self._real(name, random_set)[1]
            for name in (trial.task, *measured)
        }
        value, half = contrast_ends(
            beyond[trial.task],
            [beyond[name] for name in measured],
            [trial.weights.get(name, 1.0) for name in measured],
            width=_SURE,
        )
        if not measured:  # its specific drop is at most its drop
            off_target, _ = self.found.contrast()
            needed = max(0.0, off_target.value if off_target else 0.0) + _SLACK
            return False if value - half > needed else None
        return None if abs(value) <= half else value < 0

    def _real(self, name: str, random_set: _Drawn) -> Floats:
        """Returns the responses, intact and without the real set, to a random set's items."""
        return self.found.responses[name][:, : len(random_set.responses[name])]

    def _values(self, random_set: _Drawn) -> tuple[list[float], list[float]]:
        """Returns drop and specific drop of the real and of a random set on the same items.

        The specific drop is known if the other tasks were measured.
        """
        trial, values = self.found.trial, []
        known = all(name in random_set.responses for name in trial.others)
        names = (trial.task, *(trial.others if known else ()))
        for real in (True, False):
            losses = []
            for name in names:
                intact, ablated = self._real(name, random_set)
                after = ablated if real else random_set.responses[name]
                losses.append(trial.loss(name, intact, after))
            drops = np.array(losses)
            values.append([losses[0], *([float(trial.specific(drops)[1])] if names[1:] else [])])
        return values[0], values[1]

    def _described(
        self, kind: str, sets: Sequence[_Drawn], drawn: int, components: ComponentSet
    ) -> Controls:
        """Returns the random sets of a kind as results describe them."""
        trial = self.found.trial
        values = [self._values(random_set) for random_set in sets]
        drops = np.array([own[0] for _, own in values])
        reach = np.array([own[0] >= real[0] - 1e-12 for real, own in values])
        # a specific drop that was not needed is at most the drop
        at_most = np.array([own[-1] for _, own in values])
        reached = np.array([random_set.reaches for random_set in sets])
        losses = np.array([self.found.loss(name) for name in (trial.task, *trial.others)])
        specific = float(trial.specific(losses)[1]) if trial.others else None
        return Controls(
            kind=kind,
            items=len(self.places[trial.task]),
            other_items=sum(len(self.places[name]) for name in trial.others),
            drop=standing(float(losses[0]), drops, reach),
            specific=None if specific is None else standing(specific, at_most, reached),
            sets=tuple(
                ControlSet(
                    tuple(components.names[column] for column in random_set.columns),
                    float(own[0]),
                    float(own[1]) if len(own) > 1 else None,
                    len(random_set.responses[trial.task]),
                )
                for random_set, (_, own) in zip(sets, values, strict=True)
            ),
            drawn=drawn,
        )
