"""The tables and figures of a verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from broca.results.pages.charts import Figure, IntervalChart, Matrix, Series
from broca.results.pages.drawing import short
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, component, fixed, p_value, percent, points

if TYPE_CHECKING:
    from broca.results.verification import Sample, TaskFailures, Verification

_BESIDE = 470.0
"""Width of a chart that stands beside the picture of the model."""

MODES = ("repetition", "constant", "empty", "collapse")
"""Names of the failure modes, as results list them."""


def verification_tables(verification: Verification) -> dict[str, Table]:
    """Returns the tables of a verification by name; some have no rows."""
    members, sets = verification.members, verification.controls
    alone = verification.enough.tables() if verification.enough else {}
    return Table.by_name(
        task_table(verification),
        Table.of(
            "controls", "How many random sets of the same size reach the real set", sets,
            Column("matched by", "kind"), Column("sets", lambda line: len(line.sets)),
            Column("items"), Column("items of others", "other_items"),
            Column("are as specific", lambda line: line.specific.rank - 1),
            Column("p", "specific.p", p_value),
            Column("% ahead", "specific.ahead", fixed(0, scale=100),
                   "Share of random sets that are less specific"),
            Column("sd away", "specific.effect", fixed(1),
                   "Distance from their mean in their standard deviations"),
        ),
        Table.of(
            "members", f"Contribution of each member to {verification.task}, in points", members,
            component(),
            Column("ablated alone", "alone", points, "Drop of the task when only it is ablated"),
            Column("adds to the others", "restored", points,
                   "Drop that is avoided when only it is intact"),
            Column("p (Holm)", "p", p_value), Column("needed"),
        ),
        Table.of(
            "ablations", "The claim under other kinds of ablation, in points",
            verification.ablations,
            Column("ablation", "kind"), Column("lost", "drop", points),
            Column("specific", show=points), Column("p", show=p_value), Column("survives"),
        ),
        failure_table(verification),
        sample_table("samples", f"Outputs of {verification.task}", verification.samples),
        sample_table(
            "three", f"{verification.task}: what the model says, intact and ablated",
            sorted(verification.samples, key=lambda sample: not sample.changed)[:3],
        ).pick("prompt|answer|intact|ablated"),
    ) | alone  # fmt: skip


def verification_figures(verification: Verification) -> dict[str, Figure]:
    """Returns the figures of a verification by name."""
    figures = [before_after(verification)]
    if verification.controls:
        figures.append(control_figure(verification))
    if any(member.others for member in verification.members):
        figures.append(beside_figure(verification))
    if verification.enough and verification.enough.curves:
        figures += verification.enough.figures()
    return {figure.name: figure for figure in figures}


def task_table(verification: Verification) -> Table:
    """Returns the table of scores and, for a nonempty set, drops of every task."""
    table = Table.of(
        "tasks", "Scores on report items" + (", and drops" if verification.heads else ""),
        verification.drops,
        Column("task"), Column("role", lambda line: line.role.replace("_", " ")),
        Column("metric"), Column("items"),
        Column("chance", lambda line: line.chance or None, fixed(3), "Score of guessing"),
        Column("intact", "before", fixed(3)), Column("ablated", "after", fixed(3)),
        Column("points lost", lambda line: line.interval or line.drop, points),
        Column("below chance", lambda line: line.below_chance or None, points,
               "Points lost by noise or an inverted preference, not skill"),
        Column("p", show=p_value), Column("p (Holm)", "p_holm", p_value),
        strong=lambda line: line.role == "task",
    )  # fmt: skip
    if not verification.heads:
        return table.pick("task|role|metric|items|chance|intact")
    if (worst := verification.worst) is None:
        return table
    summary = [
        ("mean of the others", verification.off_target or verification.off_target_drop),
        (f"largest of the others: {worst.task}", worst.interval or worst.drop),
    ]
    if verification.verdict:
        summary.append((f"specific to {verification.task}", verification.specific))
    rows = tuple((name, *(None,) * 6, lost, None, None, None) for name, lost in summary)
    strong = table.strong | {len(table.rows) + 2}
    return replace(table, rows=table.rows + rows, strong=strong, summary=len(rows))


def sample_table(name: str, caption: str, samples: Sequence[Sample]) -> Table:
    """Returns the table of outputs, with the choices' log-likelihoods where there are choices."""
    return Table.of(
        name, caption, samples,
        Column("prompt"), Column("answer", "target"), Column("intact", "before", _output),
        Column("ablated", "after", _output),
        Column("score", lambda line: line.scores and "{:.2g} → {:.2g}".format(*line.scores)),
        Column("changed", lambda line: "changed" if line.changed else "same"),
    )  # fmt: skip


def failure_table(verification: Verification) -> Table:
    """Returns the table of degenerate outputs of every task that has any."""

    def shares(mode: str) -> Column:
        return Column(mode, lambda line: f"{percent(line.before[mode])} → "
                                         f"{percent(line.after[mode])}")  # fmt: skip

    def is_listed(line: TaskFailures) -> bool:
        return bool(line.excess) or any((*line.before.values(), *line.after.values()))

    return Table.of(
        "failures", "Share of degenerate outputs, intact → ablated",
        filter(is_listed, verification.failures),
        Column("task"), Column("items"), *map(shares, MODES),
        Column("newly degenerate", "excess", percent),
        Column("with loss of score", "damage", percent, "Only these count as a broken model"),
    )  # fmt: skip


def _output(text: str) -> str:
    """Returns an output as a table shows it; an empty output is named as empty."""
    return text.strip() or "(nothing)"


def member_grid(verification: Verification) -> Figure:
    """Draws the verified set within the model, with the single drops of members as colours."""
    grid = ComponentGrid(
        dict.fromkeys(verification.heads)
        | {line.head: -line.alone.value for line in verification.members},
        f"change of the score of {verification.task} when it is ablated alone",
        verification.model, selected=verification.heads, framed="in the set",
    )  # fmt: skip
    return Figure("components", "The verified set within the model.", grid)


def before_after(verification: Verification) -> Figure:
    """Draws the scores of every task, intact and, for a nonempty set, with the set ablated."""
    drops = verification.drops
    series = [
        Series("intact", "intact", tuple(enumerate(line.before for line in drops)), "ring", 7)
    ]
    if verification.heads:
        after = tuple(enumerate(line.after for line in drops))
        series.append(Series("with the set ablated", "harm", after))
    chart = IntervalChart(
        tuple(line.task for line in drops), tuple(series), "score", joined=True, wide=_BESIDE,
    )  # fmt: skip
    return Figure("scores", "Scores on report items, which the search did not use.", chart)


def control_figure(verification: Verification) -> Figure:
    """Draws what the verdict compares: the specific drops of random sets and of the real set.

    Where a random set's drop alone is far below, the others were not measured, and its drop is
    drawn.
    """
    kinds = verification.controls
    known = [
        (row, 100 * (drawn.drop if drawn.specific_drop is None else drawn.specific_drop))
        for row, kind in enumerate(kinds)
        for drawn in kind.sets
    ]
    real = [(row, 100 * kind.specific.value) for row, kind in enumerate(kinds)]
    chart = IntervalChart(
        tuple(f"matched by {kind.kind}" for kind in kinds),
        (
            Series("random sets of the same size", "intact", tuple(known), "ring", 4.0),
            Series("the real set", "harm", tuple(real), "D", 6.0),
        ),
        "points lost beyond the others", wide=_BESIDE,
    )  # fmt: skip
    return Figure("controls", "The set, and random sets of its size on the same items.", chart)


def beside_figure(verification: Verification) -> Figure:
    """Draws what each member alone costs every other task; losses that may be zero are grey."""
    members, tasks = verification.members, tuple(verification.members[0].others)
    lost = [[100 * member.others[task].value for task in tasks] for member in members]
    clear = [
        [-value if not member.others[task].low <= 0 <= member.others[task].high else 0.0
         for task, value in zip(tasks, values, strict=True)]
        for member, values in zip(members, lost, strict=True)
    ]  # fmt: skip
    chart = Matrix(
        tuple(member.head for member in members), tasks, tuple(map(tuple, clear)),
        max((abs(value) for values in clear for value in values), default=0) or 100.0,
        "change in points when it is ablated alone; grey: within noise",
        texts=tuple(tuple(short(round(-value)) for value in values) for values in lost),
        tips=tuple(
            tuple(f"{member.head} on {task}: lost {points(member.others[task])}" for task in tasks)
            for member in members
        ),
        wide=min(Matrix.wide, 260.0 + 64 * len(tasks)),
    )  # fmt: skip
    return Figure("beside", "What each member alone costs the other tasks, on few items.", chart)
