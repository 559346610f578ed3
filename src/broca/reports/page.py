"""The report of a run: its verdict, the picture of the model, and the measurements."""

from __future__ import annotations

from broca.reports import result_figures
from broca.reports.filling import filled
from broca.reports.grid import counted, noun
from broca.reports.tables import COMPONENT, Column, Table, count, fixed, p_value, yes
from broca.reports.verification import verification_parts
from broca.reports.words import headline, is_proof
from broca.results.localization import Localization, RankedComponent
from broca.results.refit import Refit
from broca.results.stress_test import StressTest
from broca.results.verification import Verification


def render_html(
    result: Localization,
    verification: Verification | None = None,
    stress: StressTest | None = None,
) -> str:
    """Renders a result as a self-contained HTML page.

    `verification` is a later verification, such as that of `broca verify`; by default the result's
    own. A stress test is summarized; `stress.html`, in the same folder, has its numbers. Names of
    models, tasks and heads are escaped, because they come from files.
    """
    verification = verification or result.verification
    names = [line.name for line in result.ranking]
    return filled(
        "localization",
        result=result,
        headline=headline(result),
        proof=is_proof(result.verdict),
        counted=counted(names),
        noun_one=noun(names, plural=False),
        grid_figure=result_figures.components(result),
        ranking=ranking_table(result),
        shared=shared_table(result),
        stability=stability_table(result),
        pairs=pairs_table(result),
        verification=verification,
        parts=verification_parts(verification),
        stress=stress,
    )


def render_refit_page(refit: Refit) -> str:
    """Renders the ranking of another recovery on a run's rows."""
    names = [line.name for line in refit.ranking]
    return filled(
        "refit",
        refit=refit,
        counted=counted(names),
        noun_one=noun(names, plural=False),
        grid_figure=result_figures.components(refit),
        ranking=ranking_table(refit),
    )


def ranking_table(result: Localization | Refit) -> Table:
    """Returns the table of all components in the order of the method."""
    effects = [line.effect for line in result.ranking]
    off_target = result.off_target_effects if isinstance(result, Localization) else {}
    if effects == sorted(effects):
        order = "most harmful ablation first"
    elif off_target:
        order = "largest specific effect first"
    else:
        order = "in the order of the method"

    def row(line: RankedComponent) -> tuple[object, ...]:
        low, high = line.ci or (None, None)
        return (
            line.name, line.effect, off_target.get(line.name), low, high, line.frequency,
            line.q_value,
        )  # fmt: skip

    signed = fixed(4, sign=True)
    return Table(
        "ranking",
        f"Estimated effect of every component, {order}",
        (
            COMPONENT,
            Column(f"effect on {result.response}", signed),
            Column("on the other tasks", fixed(3, sign=True)),
            Column("90 % low", fixed(3, sign=True)),
            Column("90 % high", fixed(3, sign=True)),
            Column("frequency", fixed(2), note="Share of resamples in which it is selected"),
            Column("q", p_value, note="Share of false discoveries up to this line"),
        ),
        tuple(row(line) for line in result.ranking),
        frozenset(n for n, line in enumerate(result.ranking) if line.name in result.selected),
    )


def shared_table(result: Localization) -> Table:
    """Returns the table of effects on every task of components that the other tasks need too."""
    return Table(
        "shared",
        "Change of each task's score when a component is ablated alone",
        (
            COMPONENT,
            Column("universal", words=True),
            *(Column(task, fixed(3, sign=True)) for task in result.tasks),
        ),
        tuple(
            (
                name,
                "yes" if name in result.universal else "no",
                *(alone[task] for task in result.tasks),
            )
            for name, alone in result.shared_effects.items()
        ),
    )


def stability_table(result: Localization) -> Table:
    """Returns the table of how often searches on other items select each component."""
    searches = 1 + len(result.repeats)
    return Table(
        "stability",
        f"Number of {searches} searches, each on other items, that select a component",
        (COMPONENT, Column("searches", count), Column("in the first", yes, words=True)),
        tuple(
            (name, times, name in result.selected) for name, times in result.times_selected.items()
        ),
    )


def pairs_table(result: Localization) -> Table:
    """Returns the table of interactions of leading components."""
    return Table(
        "pairs",
        "Pairs of components: changes of the score on confirm items",
        (
            Column("pair", components=True),
            *(Column(name, fixed(3, sign=True)) for name in (
                "first alone", "second alone", "together", "interaction", "90 % low", "90 % high",
            )),
        ),
        tuple(
            (
                f"{pair.first}, {pair.second}", pair.first_effect, pair.second_effect,
                pair.joint_effect, pair.interaction, *pair.ci,
            )
            for pair in result.interactions
        ),
    )  # fmt: skip
