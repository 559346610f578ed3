"""The verdict of a verification; docs/verification.md states the rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from broca.results.base import Interval
from broca.results.verification import Controls, Member, TaskDrop, TaskFailures, Verdict
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
    drops: Sequence[TaskDrop],
    off_target: Interval | None,
    specific: Interval | None,
    controls: Sequence[Controls],
    members: Sequence[Member],
    failures: Sequence[TaskFailures],
    *,
    heads: Sequence[str],
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
        heads: Names of the members, for the headline.
        level: Level of the tests.
    """
    claimed = next(drop for drop in drops if drop.role == "task")
    others = [drop for drop in drops if drop.role == "other"]
    assert claimed.p is not None
    lost = (
        f"{claimed.task} loses {_points(_interval(claimed))} (p {claimed.p:.2g}, "
        f"{claimed.items} items){_room(claimed)}"
    )
    named = ", ".join(heads) or "the set"
    costs = f"Ablating {named} costs {claimed.task} {_rounded(claimed.drop)}"

    broken = _broken(claimed.task, [drop.task for drop in others], failures)
    if broken is not None:
        return Verdict(
            "breaks the model",
            f"{lost}, but {broken}: the model is broken, which says nothing about {claimed.task}.",
            headline=f"Ablating {named} breaks the model, which says nothing about {claimed.task}",
        )
    if not _significant(claimed, level):
        return _no_drop(claimed, lost, named, level)
    if off_target is None or specific is None:
        return Verdict(
            "inconclusive",
            f"{lost}; no other task was measured, so that specificity is unknown: "
            "name some in `others`.",
            headline=f"{costs}; no other task was measured",
        )
    spill = f"the others lose {_points(off_target)} on average"
    worst = max(others, key=lambda drop: drop.drop)
    if len(others) > 1:
        spill += f", {worst.task} most ({_points(_interval(worst))}{_inverted(worst)})"
    hurt = [drop for drop in others if _significant(drop, level)]
    if (
        off_target.low > 0
        and off_target.value >= UNIVERSAL * claimed.drop
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
        closest = max(controls, key=lambda control: (control.drop.rank - 1) / len(control.sets))
        reached = closest.drop.rank - 1
        return Verdict(
            "not localized at head level",
            f"{lost}, but {_reached(controls, 'drop')} cost as much.",
            headline=f"{costs}, but so {'does' if reached == 1 else 'do'} {reached} of "
            f"{len(closest.sets)} random sets",
        )
    if specific.low <= 0:
        return Verdict(
            "inconclusive",
            f"{lost} and {spill}: the difference of {_points(specific)} may be zero.",
            _needed_for(specific, claimed.items),
            f"{costs}, but perhaps no more than the other tasks",
        )
    reasons: list[tuple[str, str]] = []  # in the sentence, and in the headline
    if not controls:
        reasons.append(("no random sets were measured", "no random sets were measured"))
    elif not in_specific:
        reached_by = f"{_reached(controls, 'specific')} are as specific"
        reasons.append((reached_by, "random sets are as specific"))
    if off_target.high > SPILL * claimed.drop:
        spilled = f"the others may lose more than {SPILL:.0%} of what {claimed.task} loses"
        reasons.append((spilled, "the others may lose too"))
    surest = max(others, key=lambda drop: _interval(drop).low)
    if _interval(surest).low > WORST * claimed.drop:
        alone = f"{surest.task} alone loses {_points(_interval(surest))}"
        reasons.append((alone, f"{surest.task} loses {_rounded(surest.drop)}"))
    needed = [member.head for member in members if member.needed]
    contribute = f"{len(needed)} of {len(members)} members contribute significantly"
    if members and 2 * len(needed) <= len(members):
        who = f"only {contribute} ({', '.join(needed) or 'none by itself'})"
        reasons.append((who, f"only {contribute}"))
    if reasons:
        sentences, short = zip(*reasons, strict=True)
        return Verdict(
            "partly specific",
            f"{lost} and {spill}, but {'; '.join(sentences)}.",
            headline=f"{costs}, but {' and '.join(short)}",
        )
    return Verdict(
        "specific",
        f"{lost}, {spill}, and {_reached(controls, 'specific')} are as specific; {contribute}.",
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


def _no_drop(claimed: TaskDrop, lost: str, named: str, level: float) -> Verdict:
    nothing = f"No drop of {claimed.task} was seen without {named}"
    gained = 0.02 if claimed.test == "mcnemar" else 0.05  # share of items that noise may turn right
    needed = items_needed(RELEVANT, gained=gained, level=level)
    relevant = f"a drop of {100 * RELEVANT:.0f} points"
    enough = claimed.items >= needed
    if _interval(claimed).high < RELEVANT or (claimed.drop <= 0 and enough):
        text = f"{lost}: {relevant} can be excluded."
    elif enough:
        text = f"{lost}: no change was seen; {relevant} would have been."
    else:
        return Verdict(
            "inconclusive",
            f"{lost}: {claimed.items} items are too few to see {relevant}; {needed} would do in "
            "four of five cases.",
            needed,
            f"{nothing}, on too few items to exclude one",
        )
    return Verdict("not localized at head level", text, headline=nothing)


def _needed_for(specific: Interval, items: int) -> int | None:
    """Returns the number of items with which an interval around this value would exclude zero."""
    reach = specific.value - specific.low
    if specific.value <= 0:
        return None
    # widths decrease with the root of the number; a power of 4 in 5 needs another 0.84 / 1.96
    return int(np.ceil(items * (reach * (1 + 0.8416 / 1.96) / specific.value) ** 2))


def _interval(drop: TaskDrop) -> Interval:
    """Returns a tested drop with its interval."""
    assert drop.interval is not None
    return drop.interval


def _significant(drop: TaskDrop, level: float) -> bool:
    return drop.p_holm is not None and drop.p_holm <= level and drop.drop > 0


def _points(interval: Interval) -> str:
    return (
        f"{100 * interval.value:.1f} points [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    )


def _rounded(value: float) -> str:
    """Formats points without an interval, for headlines."""
    points = f"{100 * value:.0f}"
    return "1 point" if points == "1" else f"{points} points"


def _room(drop: TaskDrop) -> str:
    """Describes how much a task can lose above chance, and the loss below chance."""
    if not drop.chance:
        return ""
    return f" of {100 * (drop.before - drop.chance):.1f} above chance{_inverted(drop)}"


def _inverted(drop: TaskDrop) -> str:
    """Describes the part of a drop that is not lost skill."""
    if drop.below_chance <= 0:
        return ""
    below = 100 * drop.below_chance
    return f", {below:.1f} of them below chance: an inverted preference, not lost skill"


def _reached(controls: Sequence[Controls], figure: Literal["drop", "specific"]) -> str:
    """Describes how many random sets of each kind reach the real set."""
    parts = []
    for control in controls:
        standing = control.specific if figure == "specific" else None
        rank = (standing or control.drop).rank
        parts.append(f"{rank - 1} of {len(control.sets)} random sets matched by {control.kind}")
    return " and ".join(parts)
