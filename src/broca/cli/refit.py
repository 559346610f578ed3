"""`broca refit`: applies another recovery to the rows of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broca.cli.commands import command
from broca.cli.output import console, print_result, print_table

if TYPE_CHECKING:
    from broca.results.localization import AdditivityInfo

SHOWN = 10


@command
def refit(
    run: str,
    /,
    *,
    recovery: str = "lasso",
    k: int | None = None,
    resamples: int = 100,
    out: str | None = None,
    json: bool = False,
) -> None:
    """Compute a new ranking from the rows that RUN measured, without a model.

    Args:
        run: The out folder of a run of `broca localize`.
        recovery: {recoveries}.
        k: Maximum number of heads to select; default: the run's.
        resamples: Number of resamples for intervals and frequencies; 0: none.
        out: Folder for refit.json.
    """
    import broca

    result = broca.refit(run, recovery=recovery, k=k, resamples=resamples)
    path = None if out is None else result.save(out)[0]
    if json:
        print_result(result)
        return
    screen = console()
    print_table(
        screen,
        f"{result.recovery} on {result.masks:,} masks of {result.method}",
        "head|effect|90 % interval|frequency|q",
        (
            (
                head.name,
                f"{head.effect:+.4f}",
                "" if head.ci is None else f"{head.ci[0]:+.3f} to {head.ci[1]:+.3f}",
                "" if head.frequency is None else f"{head.frequency:.2f}",
                "" if head.q_value is None else f"{head.q_value:.3g}",
                "bold" if head.name in result.selected else None,
            )
            for head in result.ranking[: max(SHOWN, len(result.selected))]
        ),
    )
    lines = [
        f"selected for {result.task}: {', '.join(result.selected)}"
        if result.selected
        else f"No heads selected: {result.reason}."
    ]
    if result.additivity is not None:
        lines.append(additivity_line(result.additivity))
    lines += [f"note: {note}" for note in result.notes]
    for line in lines:
        screen.print(line, markup=False)
    if path is not None:
        screen.print(f"written to {path}", markup=False, soft_wrap=True)


def additivity_line(additivity: AdditivityInfo) -> str:
    """Describes in words how well effects add up."""
    return (
        f"additivity: sums of effects explain {additivity.explained:.0%} of the variance on "
        f"held-out masks (rank correlation {additivity.rank_correlation:.2f}, "
        f"{additivity.masks:,} masks)"
    )
