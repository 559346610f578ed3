"""The verdict of a verification; docs/verification.md states the rule."""

from dataclasses import replace

import numpy as np

from broca.results.base import Interval
from broca.results.pages.tables import percent
from broca.results.verification import BROKEN, Controls, TaskDrop, Verdict, Verification
from broca.verification.statistics import behind, items_needed

GARBLED = 1.0
"""Divergence of the model's own text beyond which it is broken, in nats per token."""

SPILL = 0.25
"""Maximum mean drop of the others for a specific set, as a share of the task's drop."""

WORST = 0.5
"""Drop that no single other task may significantly reach for a specific set, as a share of the
task's drop."""

UNIVERSAL = 0.5
"""Minimum mean drop of the others for a universal set, as a share of the task's drop."""

RELEVANT = 0.10
"""The drop that a verification must be able to detect before it reports that there is none."""


def judge(found: Verification) -> Verdict:
    """Applies the rules to a verification that has statistics but no verdict.

    The first rule that fits decides; what is broken besides the task is said in the headline.
    """
    verdict = next(verdict for rule in RULES if (verdict := rule(found)) is not None)
    if verdict.label == "breaks the model":
        return verdict
    return replace(verdict, headline=f"{verdict.headline}{found.damage}")


def settled(found: Verification) -> bool:
    """Whether the verdict does not depend on random sets."""
    return any(rule(found) is not None for rule in RULES[: RULES.index(_not_ahead)])


def _breaks(found: Verification) -> Verdict | None:
    """The outputs are degenerate: those of the other tasks if there are any."""
    task, others = found.task, [drop.task for drop in found.roles("other")]
    if found.text and found.text.changed and found.text.divergence >= GARBLED:
        return Verdict(
            "breaks the model",
            f"{_lost(found)}, but so does all text ({found.text.says}): the model is broken, which "
            f"says nothing about {task}.",
            headline=f"Ablating {_named(found)} breaks the model ({found.text.says}), which says "
            f"nothing about {task}",
        )
    judged = [failure for failure in found.failures if failure.task in (others or [task])]
    share = float(np.mean([failure.damage for failure in judged])) if judged else 0.0
    if share < (BROKEN if others else 2 * BROKEN):
        return None
    modes = {
        mode: float(np.mean([failure.after[mode] - failure.before[mode] for failure in judged]))
        for mode in judged[0].after
    }
    worst = max(modes, key=lambda mode: modes[mode])
    where = "of the other tasks' outputs" if others else "of the outputs"
    return Verdict(
        "breaks the model",
        f"{_lost(found)}, but {share:.0%} {where} become degenerate and wrong (mostly {worst}, "
        f"{modes[worst]:.0%}): the model is broken, which says nothing about {task}.",
        headline=f"Ablating {_named(found)} breaks the model, which says nothing about {task}",
    )


def _no_drop(found: Verification) -> Verdict | None:
    """The task does not significantly lose."""
    claimed, lost = _claimed(found), _lost(found)
    if _significant(claimed, found.level):
        return None
    nothing = f"No drop of {claimed.task} was seen without {_named(found)}"
    gained = 0.02 if claimed.test == "mcnemar" else 0.05  # share of items that noise may turn right
    needed = items_needed(RELEVANT, gained=gained, level=found.level)
    relevant = f"a drop of {100 * RELEVANT:.0f} points"
    if _interval(claimed).high < RELEVANT:
        text = f"{lost}: {relevant} can be excluded."
        return Verdict("not localized at head level", text, headline=nothing)
    text = f"{lost}: {relevant} cannot be excluded."
    if claimed.items < needed:
        text = (
            f"{lost}: {claimed.items} items are too few to see {relevant}; {needed} would do in "
            "four of five cases."
        )
    headline = f"{nothing}, on too few items to exclude one"
    return Verdict("inconclusive", text, max(needed, 2 * claimed.items), headline)


def _not_compared(found: Verification) -> Verdict | None:
    """No other task was measured."""
    if found.roles("other"):
        return None
    none = "no other task was measured"
    if found.roles("at_chance"):
        none = "the intact model is shown to do no other task"
    return Verdict(
        "inconclusive",
        f"{_lost(found)}; {none}, so that nothing shows whether they lose it too: name some in "
        "`others`.",
        headline=f"{_costs(found)}; {none}",
    )


def _universal(found: Verification) -> Verdict | None:
    """At least half of the other tasks lose, and on average half as much."""
    others, off_target = found.roles("other"), _off_target(found)
    hurt = [drop for drop in others if _significant(drop, found.level)]
    enough = off_target.low > 0 and off_target.value >= UNIVERSAL * found.drop
    if not enough or 2 * len(hurt) < len(others):
        return None
    return Verdict(
        "universal",
        f"{_lost(found)} and {_spill(found)}: {len(hurt)} of {len(others)} other tasks suffer too.",
        headline=f"{_costs(found)} and the other tasks {_rounded(off_target.value)} on average",
    )


def _not_ahead(found: Verification) -> Verdict | None:
    """Random sets are as specific, or too few of them were measured."""
    controls = found.controls
    if any(behind(c.specific.rank - 1, len(c.sets), found.level) for c in controls):
        reached = max(controls, key=lambda c: (c.specific.rank - 1) / len(c.sets))
        return Verdict(
            "not localized at head level",
            f"{_lost(found)}, but {_reached(found)}: other components of these layers matter as "
            "much.",
            headline=f"{_costs(found)}, but {_as_specific(reached)}",
        )
    fewest = min((len(control.sets) for control in controls), default=0)
    first = all(control.specific.rank == 1 for control in controls)
    if not first or 1 / (fewest + 1) <= found.level:
        return None
    return Verdict(
        "inconclusive",
        f"{_lost(found)}, and no random set is as specific, but too few of them were compared "
        f"({fewest}) to exclude chance: ask for more, or give more rows or a smaller set.",
        headline=f"{_costs(found)}, but random sets are too few to exclude chance ({fewest})",
        provisional=True,
    )


def _perhaps_shared(found: Verification) -> Verdict | None:
    """The specific drop may be zero."""
    specific = found.specific
    assert specific is not None
    if specific.low > 0:
        return None
    needed = None
    if specific.value > 0:
        # widths decrease with the root of the number of items; a power of 4 in 5 needs another
        # 0.84 / 1.96 of the width
        width = (specific.value - specific.low) * (1 + 0.8416 / 1.96)
        needed = int(np.ceil(_claimed(found).items * (width / specific.value) ** 2))
    return Verdict(
        "inconclusive",
        f"{_lost(found)} and {_spill(found)}: the difference of {_points(specific)} may be zero.",
        needed,
        f"{_costs(found)}, but perhaps no more than the other tasks",
    )


def _partly(found: Verification) -> Verdict | None:
    """Something speaks against a specific set."""
    reasons: list[tuple[str, str]] = []  # in the sentence, and in the headline
    close = [control for control in found.controls if control.specific.p > found.level]
    if close:
        reasons.append((_reached(found), _as_specific(close[0])))
    if _off_target(found).high > SPILL * found.drop:
        spilled = f"the others may lose more than {SPILL:.0%} of what {found.task} loses"
        reasons.append((spilled, "the others may lose too"))
    surest = max(found.roles("other"), key=lambda drop: _interval(drop).low)
    if _interval(surest).low > WORST * found.drop:
        alone = f"{surest.task} alone loses {_points(_interval(surest))}"
        reasons.append((alone, f"{surest.task} loses {_rounded(surest.drop)}"))
    needed = sum(member.needed for member in found.members)
    if found.members and 2 * needed <= len(found.members):
        few = f"only {_contribute(found)}" if needed else "no member contributes significantly"
        reasons.append((few, few))
    if not reasons:
        return None
    sentences, short = zip(*reasons, strict=True)
    return Verdict(
        "partly specific",
        f"{_lost(found)} and {_spill(found)}, but {'; '.join(sentences)}.",
        headline=f"{_costs(found)}, but {' and '.join(short)}",
        provisional=bool(close),
    )


def _specific(found: Verification) -> Verdict:
    """Nothing speaks against a specific set."""
    return Verdict(
        "specific",
        f"{_lost(found)}, {_spill(found)}, and {_reached(found)}; {_contribute(found)}.",
        headline=f"The model needs {found.claim} for {found.task}",
    )


RULES = (
    _breaks, _no_drop, _not_compared, _universal, _not_ahead, _perhaps_shared, _partly, _specific,
)  # fmt: skip
"""The rules, each of which returns its verdict if it fits."""


def _claimed(found: Verification) -> TaskDrop:
    return found.roles("task")[0]


def _off_target(found: Verification) -> Interval:
    assert found.off_target is not None
    return found.off_target


def _interval(drop: TaskDrop) -> Interval:
    """Returns a tested drop with its interval."""
    assert drop.interval is not None
    return drop.interval


def _significant(drop: TaskDrop, level: float) -> bool:
    return drop.p_holm is not None and drop.p_holm <= level and drop.drop > 0


def _reached(found: Verification) -> str:
    """Describes how many random sets of each kind are as specific, and the strength of that."""
    return " and ".join(
        f"{_as_specific(control, f' matched by {control.kind}')} "
        f"(ahead of {percent(control.specific.ahead)})"
        for control in found.controls
    )


def _as_specific(control: Controls, kind: str = "") -> str:
    count = control.specific.rank - 1
    verb = "is" if count == 1 else "are"
    return f"{count} of {len(control.sets)} random sets{kind} {verb} as specific"


def _contribute(found: Verification) -> str:
    needed = sum(member.needed for member in found.members)
    idle = [member.head for member in found.members if not member.needed]
    but = f", {', '.join(idle)} {'does' if len(idle) == 1 else 'do'} not" if needed and idle else ""
    verb = "contributes" if needed == 1 else "contribute"
    return f"{needed} of {len(found.members)} members {verb} significantly{but}"


def _named(found: Verification) -> str:
    return ", ".join(found.heads) or "the set"


def _costs(found: Verification) -> str:
    return f"Ablating {_named(found)} costs {found.task} {_rounded(found.drop)}"


def _lost(found: Verification) -> str:
    """Describes what the task loses, of what it can lose above chance."""
    claimed, room = _claimed(found), ""
    if claimed.chance:
        above = 100 * (claimed.before - claimed.chance)
        room = f" of {above:.1f} above chance{_inverted(claimed)}"
    return (
        f"{claimed.task} loses {_points(_interval(claimed))} (p {claimed.p:.2g}, "
        f"{claimed.items} items){room}"
    )


def _spill(found: Verification) -> str:
    """Describes what the other tasks lose."""
    worst, mean = found.worst, f"the others lose {_points(_off_target(found))} on average"
    if worst is None or len(found.roles("other")) == 1:
        return mean
    return f"{mean}, {worst.task} most ({_points(_interval(worst))}{_inverted(worst)})"


def _inverted(drop: TaskDrop) -> str:
    """Describes the part of a drop that is not lost skill."""
    if drop.below_chance <= 0:
        return ""
    below = 100 * drop.below_chance
    return f", {below:.1f} of them below chance: noise or an inverted preference, not lost skill"


def _points(interval: Interval) -> str:
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * interval.value:.1f} points [{low:.1f}, {high:.1f}]"


def _rounded(value: float) -> str:
    """Formats points without an interval, for headlines."""
    points = f"{100 * value:.0f}"
    return "1 point" if points == "1" else f"{points} points"
