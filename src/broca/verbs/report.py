"""`report`: writes the page of a result again, or its figures for a paper."""

from __future__ import annotations

from pathlib import Path

from broca.results.base import Result
from broca.results.files import check_out_folder
from broca.results.pages.paper import Format, Width
from broca.results.reading import read


def report(
    result: str | Path | Result,
    *,
    figures: str | Path | None = None,
    format: Format = "pdf",
    width: Width = "page",
    out: str | Path | None = None,
) -> tuple[Path, ...]:
    """Writes the page of a result again, or its figures as files for a paper.

    Args:
        result: A result, or the file or out folder of one.
        figures: Folder for the figures, which is created; None writes the page.
        format: Format of the figures: `pdf`, `svg` or `png`, with embedded fonts.
        width: Width of the figures: `column` (3.35 inches) or `page` (6.9 inches).
        out: Folder for the page; by default the folder of the result.

    Returns:
        The files.

    Raises:
        BadInput: The result does not exist or has no page or figure, the format or the width is
            unknown, or the folder cannot be written.
    """
    loaded = result if isinstance(result, Result) else read(result)
    if figures is not None:
        folder = check_out_folder(figures)
        return tuple(
            figure.save(folder / f"{figure.name}.{format}", width=width)
            for figure in loaded.figures() or (loaded.plot(),)
        )
    if out is None:
        place = Path("." if isinstance(result, Result) else result).expanduser()
        out = place if place.is_dir() else place.parent
    return loaded.save_page(out)
