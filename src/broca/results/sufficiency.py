"""What a set keeps of a task alone, other sets that carry it, and members that are backups."""

from dataclasses import dataclass

from broca.results.base import Interval, joined_names
from broca.results.pages.charts import Figure, LineChart, Series
from broca.results.pages.tables import Column, Table, component, fixed, p_value, percent

ENOUGH = 0.8
"""Share of the intact model's performance that the lower end of a sufficient set exceeds."""


@dataclass(frozen=True)
class KeptCurve:
    """What is kept while the first k components of an order are intact and all others ablated.

    Kept performance is 0 where everything is ablated (at chance if that is higher) and 1 intact.

    Attributes:
        order: `ranking`, the set first and then the other components; a method that ranks by
            gradients; or `random`, the mean of random orders.
        ablation: Kind of ablation of the other components.
        tasks: `task`, or `others`: their weighted mean.
        kept: Kept performance at every k of the grid.
        area: Area under the curve over the share of components that are intact.
        distance: Area between the curve and 1.
    """

    order: str
    ablation: str
    tasks: str
    kept: tuple[Interval, ...]
    area: Interval
    distance: Interval


@dataclass(frozen=True)
class KeptSet:
    """What the set keeps alone, beside random sets of its size.

    Attributes:
        ablation: Kind of ablation of all other components.
        kept: Kept performance of the task.
        others: Mean kept performance of the others; None without others that can lose.
        random: Kept performance of random sets of as many components.
        p: (1 + random sets that keep as much) / (1 + random sets).
        sufficient: Whether the lower end of `kept` exceeds 0.8 and `p` is at most the level.
    """

    ablation: str
    kept: Interval
    others: Interval | None
    random: tuple[float, ...]
    p: float
    sufficient: bool


@dataclass(frozen=True)
class KeptWithout:
    """What the set keeps alone without one of its members.

    Attributes:
        head: Name of the member.
        kept: Kept performance without it.
        lost: Kept performance of the set beyond that.
        p: Paired p-value of no difference, Holm-corrected over the members.
    """

    head: str
    kept: Interval
    lost: Interval
    p: float


@dataclass(frozen=True)
class Sufficiency:
    """What a set keeps of its task while all other components of its kinds are ablated.

    Attributes:
        components: Number of components of these kinds, the set included.
        items: Number of report items of the task.
        other_items: Number of report items of all other tasks together.
        grid: Numbers of intact components, ascending.
        reason: Why nothing can be told; empty otherwise.
        curves: The curves; that of the ranking under the claim's ablation is the first.
        sets: The set alone, under each kind of ablation, the claim's first.
        members: The set without each member, under the claim's ablation.
        notes: Notes for the reader.
    """

    components: int
    items: int
    other_items: int
    grid: tuple[int, ...]
    reason: str = ""
    curves: tuple[KeptCurve, ...] = ()
    sets: tuple[KeptSet, ...] = ()
    members: tuple[KeptWithout, ...] = ()
    notes: tuple[str, ...] = ()

    def least(self, curve: KeptCurve) -> int | None:
        """Returns the smallest k from which on the lower end of a curve stays above 0.8."""
        low = [k for k, kept in zip(self.grid, curve.kept, strict=True) if kept.low <= ENOUGH]
        return next((k for k in self.grid if k > max(low, default=-1)), None)

    def says(self, heads: tuple[str, ...], task: str) -> str:
        """Returns in a sentence what the set keeps alone, and how many components are enough."""
        if self.reason:
            return f"whether {joined_names(heads)} are enough cannot be told: {self.reason}"
        kept = ", ".join(
            f"{percent(line.kept)} under {line.ablation} ablation" for line in self.sets
        )
        least = self.least(self.curves[0])
        first = "no first components are" if least is None else f"the first {least:,} are"
        first = "the first alone is" if least == 1 else first
        return (
            f"{joined_names(heads)} alone keep{'s' * (len(heads) == 1)} {kept} of {task}; in the "
            f"ranking's order of {self.components:,}, {first} enough"
        )

    def tables(self) -> dict[str, Table]:
        """Returns its tables by name."""
        return Table.by_name(
            Table.of(
                "alone", "What the set keeps alone, in % of the intact model", self.sets,
                Column("ablation"), Column("kept", show=percent),
                Column("by the others", "others", percent),
                Column("random sets", lambda line: len(line.random)),
                Column("most of them", lambda line: max(line.random), percent),
                Column("p", show=p_value), Column("sufficient"),
            ),
            Table.of(
                "curves", f"What orders of all {self.components} components keep", self.curves,
                Column("order"), Column("ablation"), Column("tasks"),
                Column("area under the curve", "area", fixed(3)),
                Column("distance from 1", "distance", fixed(3)),
                Column("enough from", self.least, note="Smallest number of components from which "
                       "on the lower end stays above 80 %"),
            ),
            Table.of(
                "minimal", "What the set keeps without each member, in %", self.members,
                component(), Column("kept", show=percent), Column("lost", show=percent),
                Column("p (Holm)", "p", p_value),
            ),
        )  # fmt: skip

    def figures(self) -> tuple[Figure, ...]:
        """Draws the curves, a figure for each kind of ablation."""
        figures = []
        for kind in (line.ablation for line in self.sets):
            lines: list[Series] = []
            for curve in (curve for curve in self.curves if curve.ablation == kind):
                name = curve.order if curve.tasks == "task" else "the others, by the ranking"
                points = [*zip(self.grid, curve.kept, strict=True)]
                lines.append(Series.line(len(lines), name, points))
            chart = LineChart(tuple(lines), "intact components", "kept")
            caption = f"What is kept under {kind} ablation of all others."
            figures.append(Figure(f"kept_{kind}", caption, chart))
        return tuple(figures)


@dataclass(frozen=True)
class Alternative:
    """Another set that carries the task.

    Attributes:
        how: `beneath`: it was searched, and costs this, while the sets before it are ablated;
            `instead`: with their members intact, and none of them in it.
        heads: Its members; none if nothing was found.
        drop: Drop of the task on report items.
        specific: Drop of the task beyond that of the others; None without others.
        p: Two-sided p-value of no drop.
        rows: Number of rows of its search.
        reason: Why the searches ended here; empty if they went on.
    """

    how: str
    heads: tuple[str, ...]
    drop: Interval
    specific: Interval | None
    p: float
    rows: int
    reason: str = ""


@dataclass(frozen=True)
class Backup:
    """A member that costs more where others are ablated.

    Attributes:
        head: The member that takes over.
        of: The member from which it takes over, which costs more alone; or, joined by +, the
            members that were ablated when it was found.
        alone: Drop when only `head` is ablated.
        beside: Drop when it is ablated after `of`.
        p: Paired p-value of no difference, Holm-corrected over all that were tested.
    """

    head: str
    of: str
    alone: Interval
    beside: Interval
    p: float
