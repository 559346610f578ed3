"""The tables and figures of a localization, and of a ranking by another recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broca.results.pages.charts import Figure
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, component, fixed, p_value, points

if TYPE_CHECKING:
    from broca.results.localization import Localization, Refit

_SIGNED = fixed(3, sign=True)


def component_grid(result: Localization | Refit) -> Figure:
    """Draws the effect of every component; selected ones have a frame.

    Effects whose interval includes zero are grey, and so are all if nothing was selected for want
    of an effect beyond noise and no intervals are known.
    """
    known = any(line.ci is not None for line in result.ranking)
    grid = ComponentGrid(
        {
            line.name: 0.0 if line.ci and line.ci[0] <= 0 <= line.ci[1] else line.effect
            for line in result.ranking
        },
        f"estimated effect of ablating it on {result.response} in {result.task}",
        model=getattr(result, "model", None), selected=result.selected,
        span=None if known or result.selected else 1.0,
        framed="selected, in full colour; the others in half of theirs", stands_out=True,
    )  # fmt: skip
    caption = "Each cell is a component of the model, layers from top to bottom; noise is grey."
    return Figure("components", caption, grid)


def ranking_table(result: Localization | Refit) -> Table:
    """Returns the table of all components in the order of the method."""
    effects = [line.effect for line in result.ranking]
    off_target: dict[str, float] = getattr(result, "off_target_effects", {})
    order = "largest effect beyond the others first" if off_target else "in the order of the method"
    if effects == sorted(effects):
        order = "most harmful ablation first"
    return Table.of(
        "ranking", f"Estimated effect of every component, {order}", result.ranking,
        component("name"), Column(f"effect on {result.response}", "effect", fixed(4, sign=True)),
        Column("on the other tasks", lambda line: off_target.get(line.name), _SIGNED),
        Column("90 % low", lambda line: line.ci and line.ci[0], _SIGNED),
        Column("90 % high", lambda line: line.ci and line.ci[1], _SIGNED),
        Column("frequency", show=fixed(2), note="Share of resamples or draws that select it"),
        Column("q", "q_value", p_value, "Share of false discoveries up to this line"),
        strong=lambda line: line.name in result.selected,
    )  # fmt: skip


def interaction_table(refit: Refit) -> Table:
    """Returns the components whose effects do not add up."""
    return Table.of(
        "interactions", "Components whose effects do not add up",
        refit.interactions.found if refit.interactions else (),
        Column("components", lambda line: ", ".join(line.heads)),
        Column(f"effect on {refit.response} beyond the sum", "effect", fixed(4, sign=True)),
        Column("masks"),
    )  # fmt: skip


_SETTINGS = {
    "rows": "rows of the search",
    "cost": "response that a set has to be worth for each member",
    "least": "smallest effect that counts",
    "contrast": "weight of the loss of the other tasks beside the task's",
    "share": "share of the components that a mask ablates",
    "response": "what a row measures",
    "worth": "what the chosen set loses of the task beyond the others, as a share",
    "worth_error": "standard error of `worth`",
    "bound": "upper bound, at 95 %, of what any set is worth",
    "joint_loss": "upper bound, at 95 %, of what large masks lose beyond the sum of their parts",
    "recovery": "the regression that turns rows into effects",
    "k": "maximum number of selected components",
}
"""Sentences of the settings and figures that methods report."""


def settings_table(result: Localization) -> Table:
    """Returns the settings of the search, and what it reports of itself, each with a sentence."""
    options = result.search.options
    lines = [(name.replace("_", " "), value, _SETTINGS.get(name, "see the method's options"))
             for name, value in options.items() if value not in (None, "", [], (), {})]  # fmt: skip
    columns = (Column("setting"), Column("value"), Column("meaning"))
    return Table(
        "settings", f"Settings and figures of {result.search.method}", columns, tuple(lines)
    )


def localization_tables(result: Localization) -> dict[str, Table]:
    """Returns the tables of a localization by name, those of its verification excepted."""
    return Table.by_name(
        ranking_table(result),
        settings_table(result),
        Table.of(
            "stability",
            f"Number of {1 + len(result.repeats)} searches, each on other items, that select a "
            "component",
            result.times_selected.items(),
            component(lambda entry: entry[0]), Column("searches", lambda entry: entry[1]),
            Column("in the first", lambda entry: entry[0] in result.searches[0]),
        ),
        Table.of(
            "alternatives", f"Other sets that carry {result.task}, in points", result.alternatives,
            Column("searched", "how", note="beneath: while all sets above are ablated; instead: "
                   "among all components that are in none of them"),
            Column("set", lambda line: ", ".join(line.heads) or "none"),
            Column("lost", "drop", points), Column("specific", show=points),
            Column("p", show=p_value), Column("ends", "reason"),
        ),
        Table.of(
            "backups", "Members that take over from another, in points", result.backups,
            component(), Column("takes over from", "of"),
            Column("costs alone", "alone", points), Column("costs after it", "beside", points),
            Column("p (Holm)", "p", p_value),
        ),
    )  # fmt: skip
