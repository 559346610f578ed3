"""The verdict of a verification; docs/verification.md states the rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from broca.results.base import Interval
from broca.results.verification import Controls, Member, Standing, TaskFailures, Verdict
from broca.verification.drops import MeasuredDrop
from broca.verification.statistics import items_needed

BROKEN = 0.25
"""Minimum share of degenerate and wrong outputs of a broken model on unrelated tasks."""

SPILL = 0.25
"""Maximum mean drop of the others for a specific set, as a share of the task's drop."""

WORST = 0.5
"""Drop that no single other task may significantly reach for a specific set, as a share of the
task's drop."""

UNIVERSAL = 0.5
"""Minimum mean drop of the others for a universal set, as a share of the task's drop."""

RELEVANT = 0.10
"""The drop that a verification must be able to detect before it reports that there is none."""


def judge(
    drops: Sequence[MeasuredDrop],
    off_target: Interval | None,
    specific: Interval | None,
    controls: Sequence[Controls],
    members: Sequence[Member],
    failures: Sequence[TaskFailures],
    *,
    heads: Sequence[str] = (),
    level: float = 0.05,
) -> Verdict:
    """Applies the rule, first match first.

    Args:
        drops: Drops of every task, including the claimed task.
        off_target: Mean drop of the other tasks.
        specific: The specific drop.
        controls: Comparisons with random sets.
        members: Contributions of the members.
        failures: Degenerate outputs of the tasks.
        heads: Names of the members, for the headline; those of `members` if empty.
        level: Level of the tests.
    """
    claimed = next(drop for drop in drops if drop.role == "task")
    others = [drop for drop in drops if drop.role == "other"]
    lost = (
        f"{claimed.task} loses {_points(claimed.drop)} (p {claimed.p:.2g}, {claimed.items} items)"
        f"{_room(claimed)}"
    )
    named = ", ".join(heads or [member.head for member in members]) or "the set"
    costs = f"Ablating {named} costs {claimed.task} {_rounded(claimed.drop.value)}"

    broken = _broken(claimed.task, [drop.task for drop in others], failures)
    if broken is not None:
        return Verdict(
            "breaks the model",
            f"{lost}, but {broken}: the model is broken, which says nothing about {claimed.task}.",
            headline=f"Ablating {named} breaks the model, which says nothing about {claimed.task}",
        )
    if claimed.p > level or claimed.drop.value <= 0:
        return _no_drop(claimed, lost, named, level)
    if off_target is None or specific is None:
        return Verdict(
            "inconclusive",
            f"{lost}; no other task was measured, so that specificity is unknown: "
            "name some in `others`.",
            headline=f"{costs}; no other task was measured",
        )
    spill = f"the others lose {_points(off_target)} on average"
    worst = max(others, key=lambda drop: drop.drop.value)
    if len(others) > 1:
        spill += f", {worst.task} most ({_points(worst.drop)}{_inverted(worst)})"
    hurt = [drop for drop in others if drop.p_holm <= level and drop.drop.value > 0]
    if (
        off_target.low > 0
        and off_target.value >= UNIVERSAL * claimed.drop.value
        and 2 * len(hurt) >= len(others)
    ):
        return Verdict(
            "universal",
            f"{lost} and {spill}: {len(hurt)} of {len(others)} other tasks suffer too.",
            headline=f"{costs} and the other tasks {_rounded(off_target.value)} on average",
        )
    in_drop = all(control.drop.p <= level for control in controls)
    in_specific = all(
        control.specific is not None and control.specific.p <= level for control in controls
    )
    if controls and not in_drop and not in_specific:
        fewest = min(len(control.sets) for control in controls)
        if all(control.drop.rank == 1 for control in controls) and 1 / (fewest + 1) > level:
            return Verdict(
                "inconclusive",
                f"{lost}, more than any random set, but only {fewest} of them exist: too few to "
                "exclude chance; verify a smaller set.",
                headline=f"{costs}, but too few random sets exist to exclude chance",
            )
        return Verdict(
            "not localized at head level",
            f"{lost}, but {_reached(controls, 'drop')} cost as much.",
            headline=f"{costs}, but so {_does(controls)}",
        )
    if specific.low <= 0:
        needed = _needed_for(specific, claimed.items)
        return Verdict(
            "inconclusive",
            f"{lost} and {spill}: the difference of {_points(specific)} may be zero.",
            needed,
            f"{costs}, but perhaps no more than the other tasks",
        )
    reasons, short = [], []
    if not controls:
        reasons.append("no random sets were measured")
        short.append("no random sets were measured")
    elif not in_specific:
        reasons.append(f"{_reached(controls, 'specific')} are as specific")
        short.append("random sets are as specific")
    if off_target.high > SPILL * claimed.drop.value:
        reasons.append(f"the others may lose more than {SPILL:.0%} of what {claimed.task} loses")
        short.append("the others may lose too")
    surest = max(others, key=lambda drop: drop.drop.low)
    if surest.drop.low > WORST * claimed.drop.value:
        reasons.append(f"{surest.task} alone loses {_points(surest.drop)}")
        short.append(f"{surest.task} loses {_rounded(surest.drop.value)}")
    needed_heads = sum(member.needed for member in members)
    if members and 2 * needed_heads <= len(members):
        reasons.append(
            f"only {needed_heads} of {len(members)} members contribute significantly "
            f"({', '.join(member.head for member in members if member.needed) or 'none by itself'})"
        )
        short.append(f"only {needed_heads} of {len(members)} members contribute significantly")
    if reasons:
        return Verdict(
            "partly specific",
            f"{lost} and {spill}, but {'; '.join(reasons)}.",
            headline=f"{costs}, but {' and '.join(short)}",
        )
    return Verdict(
        "specific",
        f"{lost}, {spill}, and {_reached(controls, 'specific')} are as specific; "
        f"{needed_heads} of {len(members)} members contribute significantly.",
        headline=f"The model needs {named} for {claimed.task}",
    )


def _broken(task: str, others: Sequence[str], failures: Sequence[TaskFailures]) -> str | None:
    """Describes the degenerate outputs if the model is broken, on the other tasks if any."""
    by_task = {failure.task: failure for failure in failures}
    judged = [by_task[name] for name in others if name in by_task]
    least = BROKEN
    if not others and task in by_task:
        judged, least = [by_task[task]], 2 * BROKEN
    if not judged:
        return None
    share = float(np.mean([failure.damage for failure in judged]))
    if share < least:
        return None
    modes = {
        mode: float(np.mean([failure.after[mode] - failure.before[mode] for failure in judged]))
        for mode in judged[0].after
    }
    worst = max(modes, key=lambda mode: modes[mode])
    where = "of the other tasks' outputs" if others else "of the outputs"
    return f"{share:.0%} {where} become degenerate and wrong (mostly {worst}, {modes[worst]:.0%})"


def _no_drop(claimed: MeasuredDrop, lost: str, named: str, level: float) -> Verdict:
    nothing = f"No drop of {claimed.task} was seen without {named}"
    gained = 0.02 if claimed.test == "mcnemar" else 0.05  # share of items that noise may turn right
    needed = items_needed(RELEVANT, gained=gained, level=level)
    if claimed.drop.high < RELEVANT or (claimed.drop.value <= 0 and claimed.items >= needed):
        return Verdict(
            "not localized at head level",
            f"{lost}: a drop of {100 * RELEVANT:.0f} points can be excluded.",
            headline=nothing,
        )
    if claimed.items >= needed:
        return Verdict(
            "not localized at head level",
            f"{lost}: no change was seen; a drop of {100 * RELEVANT:.0f} points would have been.",
            headline=nothing,
        )
    return Verdict(
        "inconclusive",
        f"{lost}: {claimed.items} items are too few to see a drop of {100 * RELEVANT:.0f} points; "
        f"{needed} would do in four of five cases.",
        needed,
        f"{nothing}, on too few items to exclude one",
    )


def _needed_for(specific: Interval, items: int) -> int | None:
    """Returns the number of items with which an interval around this value would exclude zero."""
    reach = specific.value - specific.low
    if specific.value <= 0:
        return None
    # widths decrease with the root of the number; a power of 4 in 5 needs another 0.84 / 1.96
    return int(np.ceil(items * (reach * (1 + 0.8416 / 1.96) / specific.value) ** 2))


def _points(interval: Interval) -> str:
    return (
        f"{100 * interval.value:.1f} points [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    )


def _rounded(value: float) -> str:
    """Formats points without an interval, for headlines."""
    points = f"{100 * value:.0f}"
    return "1 point" if points == "1" else f"{points} points"


def _room(drop: MeasuredDrop) -> str:
    """Describes how much a task can lose above chance, and the loss below chance."""
    if not drop.chance:
        return ""
    room = 100 * (drop.before - drop.chance)
    return f" of {room:.1f} above chance{_inverted(drop)}"


def _inverted(drop: MeasuredDrop) -> str:
    """Describes the part of a drop that is not lost skill."""
    if drop.below_chance <= 0:
        return ""
    below = 100 * drop.below_chance
    return f", {below:.1f} of them below chance: an inverted preference, not lost skill"


def _reached(controls: Sequence[Controls], figure: Literal["drop", "specific"]) -> str:
    """Describes how many random sets of each kind reach the real set."""
    return " and ".join(
        f"{_standing(control, figure).rank - 1} of {len(control.sets)} random sets matched by "
        f"{control.kind}"
        for control in controls
    )


def _does(controls: Sequence[Controls]) -> str:
    """Describes for a headline the kind of random sets that reaches the real set most often."""
    closest = max(controls, key=lambda control: (control.drop.rank - 1) / len(control.sets))
    reached, sets = closest.drop.rank - 1, len(closest.sets)
    return f"{'do' if reached != 1 else 'does'} {reached} of {sets} random sets"


def _standing(controls: Controls, figure: Literal["drop", "specific"]) -> Standing:
    return (controls.specific if figure == "specific" else None) or controls.drop
