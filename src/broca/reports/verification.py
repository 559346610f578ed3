"""The figures and tables of a verification, in a report and on its own page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broca.reports import result_figures
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.tables import (
    COMPONENT,
    Column,
    Table,
    count,
    fixed,
    p_value,
    percent,
    points,
    words,
    yes,
)
from broca.reports.words import headline, is_proof
from broca.results.base import Interval
from broca.results.verification import Standing, Verification

_MODES = ("repetition", "constant", "empty", "collapse")


@dataclass(frozen=True)
class VerificationParts:
    """Figures and tables of a verification; a table without rows is left out.

    Attributes:
        scores: Scores, intact and ablated.
        tasks: Drops of every task.
        control_figure: Random sets and the real one; None without random sets.
        controls: Rank of the real set among random sets.
        members: Contributions of members.
        elsewhere: Drops of the other tasks without each member alone.
        changes: Outputs that each member changes.
        curve: Drops with an increasing number of ablated components; None if it was not requested.
        ablations: The claim under other ablations.
        crossings: Other tasks of the same capability.
        failures: Degenerate outputs by task.
        samples: Outputs side by side.
    """

    scores: Figure
    tasks: Table
    control_figure: Figure | None
    controls: Table
    members: Table
    elsewhere: Table
    changes: Table
    curve: Figure | None
    ablations: Table
    crossings: Table
    failures: Table
    samples: Table


def render_verification_page(verification: Verification) -> str:
    """Renders a verification without a search as a self-contained page.

    Text from models and tasks is escaped.
    """
    return filled(
        "verification",
        verification=verification,
        headline=headline(verification),
        proof=is_proof(verification.verdict),
        grid_figure=result_figures.members(verification),
        parts=verification_parts(verification),
    )


def verification_parts(verification: Verification) -> VerificationParts:
    """Returns the figures and tables of a verification."""
    return VerificationParts(
        scores=result_figures.before_after(verification),
        tasks=task_table(verification),
        control_figure=(
            result_figures.controls(verification.controls) if verification.controls else None
        ),
        controls=control_table(verification),
        members=member_table(verification),
        elsewhere=elsewhere_table(verification),
        changes=change_table(verification),
        curve=None if verification.curve is None else result_figures.curve(verification.curve),
        ablations=ablation_table(verification),
        crossings=crossing_table(verification),
        failures=failure_table(verification),
        samples=sample_table(verification),
    )


def task_table(verification: Verification) -> Table:
    """Returns the table of scores and, for a nonempty set, drops of every task."""
    ablated = bool(verification.heads)
    rows: list[tuple[Any, ...]] = []
    for line in verification.drops:
        after = verification.after[line.task] if ablated else None
        lost: Interval | float | None = (line.interval or line.drop) if ablated else None
        rows.append((
            line.task, line.role.replace("_", " "), line.metric, line.items, line.chance or None,
            verification.baseline[line.task], after, lost,
            100 * line.below_chance if line.below_chance else None, line.p, line.p_holm,
        ))  # fmt: skip
    if ablated and verification.off_target_drop is not None:
        others = verification.off_target or verification.off_target_drop
        specific = verification.specific or verification.specific_drop
        blank, worst = (None,) * 6, verification.worst
        rows.append(("mean of the others", *blank, others, None, None, None))
        if worst is not None:
            lost = worst.interval or worst.drop
            rows.append((f"largest of the others: {worst.task}", *blank, lost, None, None, None))
        rows.append((f"specific to {verification.task}", *blank, specific, None, None, None))
    strong = {
        n for n, row in enumerate(rows) if row[1] == "task" or row[0].startswith("specific to ")
    }
    return Table(
        "tasks",
        "Scores on report items" + (", and drops" if ablated else ""),
        (
            *words("task", "role", "metric"),
            Column("items", count),
            Column("chance", fixed(3), note="Score of guessing"),
            Column("intact", fixed(3)),
            Column("ablated", fixed(3)),
            Column("points lost", points),
            Column(
                "below chance", fixed(1), note="Points lost to an inverted preference, not to skill"
            ),
            Column("p", p_value),
            Column("p (Holm)", p_value),
        ),
        tuple(rows),
        frozenset(strong),
    )


def control_table(verification: Verification) -> Table:
    """Returns the table of the rank of the real set among random sets."""

    def standing(
        value: Standing | None, sets: int
    ) -> tuple[str | None, float | None, float | None]:
        if value is None:
            return None, None, None
        return f"{value.rank - 1} of {sets}", value.p, value.effect

    return Table(
        "controls",
        "How many random sets of the same size reach the real set",
        (
            Column("matched by", words=True),
            Column("sets", count),
            Column("items", count),
            Column("items of others", count),
            Column("reach its drop"),
            Column("p", p_value),
            Column("sd away", fixed(1)),
            Column("reach its specific drop"),
            Column("p ", p_value),
            Column("sd away ", fixed(1)),
        ),
        tuple(
            (
                control.kind, len(control.sets), control.items, control.other_items,
                *standing(control.drop, len(control.sets)),
                *standing(control.specific, len(control.sets)),
            )
            for control in verification.controls
        ),
    )  # fmt: skip


def member_table(verification: Verification) -> Table:
    """Returns the table of the contributions of members."""
    return Table(
        "members",
        f"Contribution of each member to {verification.task}, in points",
        (
            COMPONENT,
            Column("ablated alone", points, note="Drop of the task when only it is ablated"),
            Column(
                "adds to the others", points, note="Drop that is avoided when only it is intact"
            ),
            Column("p (Holm)", p_value),
            Column("needed", yes, words=True),
        ),
        tuple(
            (line.head, line.alone, line.restored, line.p, line.needed)
            for line in verification.members
        ),
    )


def elsewhere_table(verification: Verification) -> Table:
    """Returns the table of drops of other tasks without each member; a click shows them too."""
    return Table(
        "elsewhere",
        "Drops of the other tasks when only each member is ablated, in points",
        (COMPONENT, Column("task", words=True), Column("lost", points)),
        tuple(
            (line.head, task, drop)
            for line in verification.members
            for task, drop in line.elsewhere.items()
        ),
    )


def change_table(verification: Verification) -> Table:
    """Returns the table of some outputs that each member changes; a click shows them too."""
    return Table(
        "changes",
        "Outputs that each member changes",
        (
            COMPONENT,
            *words("prompt", "answer"),
            Column("with it", _shown, words=True),
            Column("without it", _shown, words=True),
            Column("rest of the set", words=True),
        ),
        tuple(
            (
                line.head,
                change.prompt,
                change.target,
                change.before,
                change.after,
                line.other_members,
            )
            for line in verification.members
            for change in line.changes
        ),
    )


def ablation_table(verification: Verification) -> Table:
    """Returns the table of the claim under other kinds of ablation."""
    return Table(
        "ablations",
        "The claim under other kinds of ablation, in points",
        (
            Column("ablation", words=True),
            Column("lost", points),
            Column("specific", points),
            Column("p", p_value),
            Column("survives", yes, words=True),
        ),
        tuple(
            (line.kind, line.drop, line.specific, line.p, line.survives)
            for line in verification.ablations
        ),
    )


def crossing_table(verification: Verification) -> Table:
    """Returns the table of components of a task, measured on others of the same capability."""
    return Table(
        "crossings",
        "Drops without the components of another task of the capability, in points",
        (
            *words("found on", "measured on", "components"),
            Column("lost", points),
            Column("p", p_value),
        ),
        tuple(
            (line.found_on, line.measured_on, " ".join(line.heads), line.drop, line.p)
            for line in verification.crossings
        ),
    )


def failure_table(verification: Verification) -> Table:
    """Returns the table of degenerate outputs of every task that has any."""
    return Table(
        "failures",
        "Share of degenerate outputs, intact → ablated",
        (
            Column("task", words=True),
            Column("items", count),
            *(Column(mode) for mode in _MODES),
            Column("newly degenerate", percent),
            Column("with loss of score", percent, note="Only these count as a broken model"),
        ),
        tuple(
            (
                line.task,
                line.items,
                *(f"{percent(line.before[mode])} → {percent(line.after[mode])}" for mode in _MODES),
                line.excess,
                line.damage,
            )
            for line in verification.failures
            if line.excess or any((*line.before.values(), *line.after.values()))
        ),
    )


def sample_table(verification: Verification) -> Table:
    """Returns the table of outputs side by side."""
    return Table(
        "samples",
        f"Outputs of {verification.task}, side by side",
        (
            *words("prompt", "answer"),
            Column("intact", _shown, words=True),
            Column("ablated", _shown, words=True),
        ),
        tuple((line.prompt, line.target, line.before, line.after) for line in verification.samples),
    )


def _shown(output: str) -> str:
    """Returns an output as a table shows it; an empty output is named as empty."""
    return output.strip() or "(nothing)"
