"""A stress test as an HTML page."""

from __future__ import annotations

from broca.reports import result_figures
from broca.reports.filling import filled
from broca.reports.tables import Column, Table, fixed, interval
from broca.results.stress_test import StressTest


def render_stress_page(stress: StressTest) -> str:
    """Renders a stress test as a self-contained HTML page; text is escaped."""
    return filled(
        "stress",
        stress=stress,
        grid_figure=result_figures.tested_set(stress),
        transfer=result_figures.shifts(stress) if stress.shifts else None,
        shifts=shift_table(stress),
        need=result_figures.necessity(stress) if stress.necessity else None,
        necessity=necessity_table(stress),
        reversals=reversal_table(stress),
    )


def shift_table(stress: StressTest) -> Table:
    """Returns the table of the effects of writes into the target."""
    return Table(
        "transfer",
        "The effect of writing outputs into the set, in nats",
        (
            Column("written into the target", words=True), Column("transfer", interval),
            Column("copying", interval), Column("real beyond it", interval),
        ),
        tuple((line.source, line.transfer, line.copying, line.beyond) for line in stress.shifts),
    )  # fmt: skip


def reversal_table(stress: StressTest) -> Table:
    """Returns the table of the damage that restoring a part undoes."""
    return Table(
        "reversal",
        "Share of the damage that restoring a part undoes",
        (Column("restored", words=True), Column("share", interval)),
        tuple((line.part, line.share) for line in stress.reversals),
    )


def necessity_table(stress: StressTest) -> Table:
    """Returns the table of drops of the family and its controls without the set."""
    families = dict.fromkeys(name for line in stress.necessity for name in line.controls)
    return Table(
        "necessity",
        "Drop of the margin without the set, in nats",
        (
            Column("ablation", words=True), Column("drop", interval),
            *(Column(name, fixed(2)) for name in families), Column("selective", fixed(2)),
            Column("rank among random sets"),
        ),
        tuple(
            (
                line.ablation, line.drop, *(line.controls.get(name) for name in families),
                line.selective, f"{line.rank} of {len(line.null) + 1}",
            )
            for line in stress.necessity
        ),
    )  # fmt: skip
