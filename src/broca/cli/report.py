"""`broca report`: writes the page of a result again, or its figures for a paper."""

from __future__ import annotations

from broca.cli.commands import command
from broca.cli.wording import say


@command
def report(
    run: str,
    /,
    *,
    figures: str | None = None,
    format: str = "pdf",
    width: str = "page",
    out: str | None = None,
) -> None:
    """Write the page of a result again, or its figures for a paper.

    Args:
        run: The out folder of a command, or a file that it wrote.
        figures: Folder for the figures; without it the page is written.
        format: pdf, svg or png, with embedded fonts.
        width: column or page of a two-column paper.
        out: Folder for the page; default: the result's.
    """
    import broca

    written = broca.report(run, figures=figures, format=format, width=width, out=out)  # type: ignore[arg-type]  # it checks
    say(*(str(path) for path in written))
