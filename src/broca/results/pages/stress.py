"""The tables and figures of a stress test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broca.results.pages.charts import IntervalChart, Point, Series
from broca.results.pages.figure import Figure
from broca.results.pages.grid import grid_of_set
from broca.results.pages.tables import Column, Table, fixed, interval

if TYPE_CHECKING:
    from broca.results.stress_test import StressTest


def stress_tables(stress: StressTest) -> dict[str, Table]:
    """Returns the tables of a stress test by name."""
    families = dict.fromkeys(name for line in stress.necessity for name in line.controls)

    def control(name: str) -> Column:
        return Column(name, lambda line: line.controls.get(name), fixed(2))

    tables = (
        Table.of(
            "transfer", "The effect of writing outputs into the set, in nats", stress.shifts,
            Column("written into the target", "source"), Column("transfer", show=interval),
            Column("copying", show=interval), Column("real beyond it", "beyond", interval),
        ),
        Table.of(
            "necessity", "Drop of the margin without the set, in nats", stress.necessity,
            Column("ablation"), Column("drop", show=interval),
            *map(control, families),
            Column("selective", show=fixed(2)),
            Column("rank among random sets", lambda line: f"{line.rank} of {len(line.null) + 1}"),
        ),
        Table.of(
            "reversal", "Share of the damage that restoring a part undoes", stress.reversals,
            Column("restored", "part"), Column("share", show=interval),
        ),
    )  # fmt: skip
    return {table.name: table for table in tables}


def tested_grid(stress: StressTest) -> Figure:
    """Draws the tested set within the model."""
    grid = grid_of_set(stress.model, stress.heads, unit="effects of single heads")
    return Figure("components", "The tested set within the model.", grid)


def stress_figures(stress: StressTest) -> dict[str, Figure]:
    """Returns the figures of a stress test by name: transfer and necessity."""
    shifts = [(row, Point.of(line.transfer)) for row, line in enumerate(stress.shifts)]
    transfer = IntervalChart(
        tuple(line.source for line in stress.shifts),
        (
            Series("the real write", "harm", tuple(shifts[:1]), "diamond", 6.0),
            Series("its controls", "intact", tuple(shifts[1:])),
        ),
        "transfer, nats",
        joined=True,
    )
    drops = tuple((row, Point.of(line.drop)) for row, line in enumerate(stress.necessity))
    controls = tuple(
        (row, Point(drop))
        for row, line in enumerate(stress.necessity)
        for drop in line.controls.values()
    )
    necessity = IntervalChart(
        tuple(line.ablation for line in stress.necessity),
        (
            Series(stress.family, "harm", drops, "diamond", 6.0),
            Series("control families", "intact", controls),
        ),
        "drop of the margin, nats",
        joined=True,
    )
    return {
        "transfer": Figure(
            "transfer", "The effect of writing other outputs into the set.", transfer
        ),
        "necessity": Figure(
            "necessity", "The drop of the margin when the set is ablated.", necessity
        ),
    }
