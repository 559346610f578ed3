"""The result of a stress test, `stress.json`, with its tables and figures."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from broca.options.base import Seed
from broca.results.base import Interval, ModelInfo, Result, joined_names
from broca.results.pages.charts import Figure, IntervalChart, Series
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, fixed, interval
from broca.results.pages.template import filled

StressLabel = Literal["transfers", "soft", "answer-bias", "broad-state", "inert", "inconclusive"]
"""The verdicts; docs/stress.md has the rule."""


@dataclass(frozen=True)
class Necessity:
    """Drop of the margin under ablation, in nats.

    Attributes:
        ablation: Kind of ablation, such as `zero` or `mean`.
        drop: Drop on the family.
        controls: Drop on each control family.
        selective: The drop minus the largest drop of the control families.
        null: Selective drops of random sets from the same layers.
        rank: 1 + the number of random sets that reach the real set.
    """

    ablation: str
    drop: Interval
    controls: dict[str, float]
    selective: float
    null: tuple[float, ...]
    rank: int


@dataclass(frozen=True)
class Probe:
    """Accuracy of a linear probe of the operation, on held-out operands.

    Attributes:
        accuracy: Accuracy from the heads' outputs at the last token.
        templates: Accuracy on a held-out template; None with a single template.
        shuffled: Accuracy with shuffled labels.
        surface: Accuracy from the operand's tokens only.
        chance: Share of the most common operation.
        items: Number of prompts.
    """

    accuracy: float
    templates: float | None
    shuffled: float
    surface: float
    chance: float
    items: int


@dataclass(frozen=True)
class Reversal:
    """The effect of restoring a part of the ablated outputs.

    Attributes:
        part: The part that is restored.
        share: Share of the damage that it undoes.
    """

    part: str
    share: Interval


@dataclass(frozen=True)
class Shift:
    """The effect of writing a source's outputs into a target, in nats.

    Attributes:
        source: Source of the outputs.
        transfer: Change of log p(A(v)) - log p(B(v)).
        copying: Change of log p(A(u)), the real source's answer; None for random heads.
        beyond: Transfer of the real write minus this transfer, paired; None for the real write.
    """

    source: str
    transfer: Interval
    copying: Interval | None
    beyond: Interval | None


class StressTest(Result, file="stress.json", page="stress.html", verb="broca stress"):
    """A stress test of a set of heads.

    Attributes:
        model: The model.
        family: The family of prompts.
        heads: The set.
        seed: Seed of pairs, random sets and resampling.
        pairs: Number of pairs of a source and a target.
        necessity: Selective necessity, ablation by ablation.
        probe: Decodability.
        reversals: Reversal by strict subsets.
        shifts: The real write, then its controls.
        positive_control: Shift of a write that must have an effect.
        verdict: The verdict in a word.
        text: The verdict in a sentence.
        notes: Notes for the reader.
    """

    kind: Literal["stress test"] = "stress test"
    model: ModelInfo
    family: str
    heads: tuple[str, ...]
    seed: Seed
    pairs: int
    necessity: tuple[Necessity, ...]
    probe: Probe | None
    reversals: tuple[Reversal, ...]
    shifts: tuple[Shift, ...]
    positive_control: Interval
    verdict: StressLabel
    text: str
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The set that was tested."""
        return self.heads

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figures: transfer, necessity."""
        return tuple(stress_figures(self).values())

    def page(self) -> str:
        """Renders the stress test."""
        grid = ComponentGrid(
            dict.fromkeys(self.heads), "", self.model, selected=self.heads, framed="in the set"
        )
        return filled(
            "stress", stress=self, tables=stress_tables(self), figures=stress_figures(self),
            grid_figure=Figure("components", "The tested set within the model.", grid),
        )  # fmt: skip

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the own page, and the report of the run whose selection was tested."""
        return self.report_in(folder) | super().pages(folder)

    def terminal(self) -> Iterator[str | Table]:
        """Yields the verdict, then the tables."""
        yield f"{self.verdict}: {self.text}"
        yield f"{self.model.name}, family {self.family}: {joined_names(self.heads)}"
        yield from stress_tables(self).values()
        if self.probe is not None:
            yield (
                f"probe {self.probe.accuracy:.2f} (shuffled {self.probe.shuffled:.2f}, surface "
                f"{self.probe.surface:.2f}, chance {self.probe.chance:.2f})"
            )
        yield f"positive control {interval(self.positive_control)} nats"
        yield from (f"note: {note}" for note in self.notes)
        yield f"{self.pairs} pairs, seed {self.seed}"

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each interval: necessity, then reversal, then transfer."""
        intervals = [
            *(("necessity", line.ablation, line.drop) for line in self.necessity),
            *(("reversal", line.part, line.share) for line in self.reversals),
            *(("transfer", line.source, line.transfer) for line in self.shifts),
            *(("copying", line.source, line.copying) for line in self.shifts if line.copying),
            ("positive control", "", self.positive_control),
        ]
        return [
            {
                "measure": measure, "of": name,
                "value": interval.value, "low": interval.low, "high": interval.high,
            }
            for measure, name, interval in intervals
        ]  # fmt: skip


def stress_tables(stress: StressTest) -> dict[str, Table]:
    """Returns the tables of a stress test by name."""
    families = dict.fromkeys(name for line in stress.necessity for name in line.controls)

    def control(name: str) -> Column:
        return Column(name, lambda line: line.controls.get(name), fixed(2))

    return Table.by_name(
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


def stress_figures(stress: StressTest) -> dict[str, Figure]:
    """Returns the figures of a stress test by name: transfer and necessity."""
    shifts = tuple((row, line.transfer) for row, line in enumerate(stress.shifts))
    real = Series("the real write", "harm", shifts[:1], "D", 6.0)
    others = Series("its controls", "intact", shifts[1:])
    names = tuple(line.source for line in stress.shifts)
    transfer = IntervalChart(names, (real, others), "transfer, nats", joined=True)
    rows = tuple(enumerate(stress.necessity))
    drops = tuple((row, line.drop) for row, line in rows)
    controls = tuple((row, drop) for row, line in rows for drop in line.controls.values())
    real = Series(stress.family, "harm", drops, "D", 6.0)
    others = Series("control families", "intact", controls)
    names = tuple(line.ablation for line in stress.necessity)
    necessity = IntervalChart(names, (real, others), "drop of the margin, nats", joined=True)
    figures = (
        Figure("transfer", "The effect of writing other outputs into the set.", transfer),
        Figure("necessity", "The drop of the margin when the set is ablated.", necessity),
    )
    return {figure.name: figure for figure in figures}
