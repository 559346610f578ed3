"""What a verification shows: its figures and tables, in a report and as a page of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broca.reports import figures
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
        tasks: What every task loses.
        control_figure: Random sets and the real one; None without random sets.
        controls: Where the real set stands among them.
        members: What each member contributes.
        elsewhere: What each member alone costs the other tasks.
        changes: Outputs that each member changes.
        curve: Drops with more and more components ablated; None where it was not requested.
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
    """Renders a verification without a search as one page that needs nothing from outside.

    Text from models and tasks is escaped: it may hold anything.
    """
    return filled(
        "verification",
        verification=verification,
        headline=headline(verification),
        proof=is_proof(verification.verdict),
        grid_figure=figures.members(verification),
        parts=verification_parts(verification),
    )


def verification_parts(verification: Verification) -> VerificationParts:
    """The figures and tables of one verification."""
    return VerificationParts(
        scores=figures.before_after(verification),
        tasks=task_table(verification),
        control_figure=(figures.controls(verification.controls) if verification.controls else None),
        controls=control_table(verification),
        members=member_table(verification),
        elsewhere=elsewhere_table(verification),
        changes=change_table(verification),
        curve=None if verification.curve is None else figures.curve(verification.curve),
        ablations=ablation_table(verification),
        crossings=crossing_table(verification),
        failures=failure_table(verification),
        samples=sample_table(verification),
    )


def task_table(verification: Verification) -> Table:
    """Scores of every task and what it loses; of an empty set the intact scores alone."""
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
            rows.append((f"most of the others: {worst.task}", *blank, lost, None, None, None))
        rows.append((f"specific to {verification.task}", *blank, specific, None, None, None))
    strong = {
        n for n, row in enumerate(rows) if row[1] == "task" or row[0].startswith("specific to ")
    }
    return Table(
        "tasks",
        "Scores on report items" + (", and what each task loses" if ablated else ""),
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
    """Where the real set stands among random ones."""

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
    """What each member contributes."""
    return Table(
        "members",
        f"What each member contributes to {verification.task}, in points",
        (
            COMPONENT,
            Column("ablated alone", points, note="What the task loses without it alone"),
            Column("adds to the others", points, note="What comes back when it alone is intact"),
            Column("p (Holm)", p_value),
            Column("needed", yes, words=True),
        ),
        tuple(
            (line.head, line.alone, line.restored, line.p, line.needed)
            for line in verification.members
        ),
    )


def elsewhere_table(verification: Verification) -> Table:
    """What each member alone costs the other tasks, which a click on it shows too."""
    return Table(
        "elsewhere",
        "What each member, ablated alone, costs the other tasks, in points",
        (COMPONENT, Column("task", words=True), Column("lost", points)),
        tuple(
            (line.head, task, drop)
            for line in verification.members
            for task, drop in line.elsewhere.items()
        ),
    )


def change_table(verification: Verification) -> Table:
    """Some outputs that each member changes, which a click on it shows too."""
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
            (line.head, one.prompt, one.target, one.before, one.after, line.beside)
            for line in verification.members
            for one in line.changes
        ),
    )


def ablation_table(verification: Verification) -> Table:
    """The claim under other kinds of ablation."""
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
    """Components found on one task of a capability, measured on another."""
    return Table(
        "crossings",
        "Components found on one task of the capability, measured on another, in points",
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
    """Degenerate outputs of every task in which there are any."""
    return Table(
        "failures",
        "Share of degenerate outputs, intact → ablated",
        (
            Column("task", words=True),
            Column("items", count),
            *(Column(mode) for mode in _MODES),
            Column("newly degenerate", percent),
            Column("with loss of score", percent, note="These alone count as a broken model"),
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
    """Outputs side by side."""
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
    """An output as a table shows it; an empty output is named as such."""
    return output.strip() or "(nothing)"
