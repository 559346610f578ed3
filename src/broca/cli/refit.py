"""`broca refit`: another recovery on the rows of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from broca.results.localization import AdditivityInfo

SHOWN = 10


def refit(
    run: Annotated[str, typer.Argument(help="The out folder of a run of `broca localize`.")],
    recovery: Annotated[
        str,
        typer.Option(
            help="lasso, lasso-cv, omp, elastic-net, ridge, bayesian, ard, stability or "
            "non-positive."
        ),
    ] = "lasso",
    k: Annotated[int | None, typer.Option(help="Most heads to select; default: the run's.")] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Resamples for intervals and frequencies; 0: none.")
    ] = 100,
    out: Annotated[str | None, typer.Option(help="Folder for refit.json.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print refit.json on stdout.")] = False,
) -> None:
    """Rank anew from the rows that RUN measured, without a model."""
    from broca.results.codec import encode
    from broca.verbs.refit import refit as compute

    found = compute(run, recovery=recovery, k=k, resamples=resamples)
    path = None if out is None else found.save(out)[0]
    if json:
        sys.stdout.write(encode(found))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"{found.recovery} on {found.masks:,} masks of {found.method}")
    for column in ("head", "effect", "90 % interval", "frequency", "q"):
        table.add_column(column, justify="left" if column == "head" else "right")
    for one in found.ranking[: max(SHOWN, len(found.selected))]:
        table.add_row(
            one.name,
            f"{one.effect:+.4f}",
            "" if one.ci is None else f"{one.ci[0]:+.3f} to {one.ci[1]:+.3f}",
            "" if one.frequency is None else f"{one.frequency:.2f}",
            "" if one.q_value is None else f"{one.q_value:.3g}",
            style="bold" if one.name in found.selected else None,
        )
    console.print(table)
    if found.selected:
        console.print(f"selected for {found.task}: {', '.join(found.selected)}", markup=False)
    else:
        console.print(f"No heads selected: {found.reason}.", markup=False)
    if found.additivity is not None:
        console.print(additivity_line(found.additivity), markup=False)
    for note in found.notes:
        console.print(f"note: {note}", markup=False)
    if path is not None:
        console.print(f"written to {path}", markup=False, soft_wrap=True)


def additivity_line(found: AdditivityInfo) -> str:
    """Says how well effects add up, in words."""
    return (
        f"additivity: sums of effects explain {found.explained:.0%} of the variance on held-out "
        f"masks (rank correlation {found.rank_correlation:.2f}, {found.masks:,} masks)"
    )
