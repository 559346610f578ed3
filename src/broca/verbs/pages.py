"""`report` and `view`: the page of a result, its figures, and an index of many results."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from broca.errors import BadInput
from broca.known_paths import folder_of, place_of
from broca.results.base import Result
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import Localization
from broca.results.pages.charts import Format, Width
from broca.results.pages.template import filled
from broca.results.reading import KINDS, entry_of, read
from broca.results.verification import Verification


def report(
    result: str | Path | Result,
    *,
    figures: str | Path | None = None,
    format: Format | None = None,
    width: Width | None = None,
    out: str | Path | None = None,
) -> tuple[Path, ...]:
    """Writes the page of a result again, or its figures as files for a paper.

    Args:
        result: A result, or the file or out folder of one.
        figures: Folder for the figures, which is created; None writes the page.
        format: Format of the figures: `pdf` by default, `svg` or `png`, with embedded fonts.
        width: Width of the figures: `column` (3.35 inches), or `page` (6.9 inches) by default.
        out: Folder for the page; by default the folder of the result.

    Returns:
        The files.

    Raises:
        BadInput: The result does not exist or has no page or figure, the format or the width is
            unknown or given without `figures`, `out` is given beside them, or the folder cannot be
            written.
    """
    loaded = result if isinstance(result, Result) else read(result)
    if figures is not None:
        if out is not None:
            raise BadInput("`out` is the folder of the page: with `figures`, leave it out")
        drawn = loaded.figures() or (loaded.plot(),)
        folder = check_out_folder(figures)
        return tuple(
            figure.save(folder / f"{figure.name}.{format or 'pdf'}", width=width or "page")
            for figure in drawn
        )
    if format or width:
        raise BadInput("`format` and `width` are those of figures: name the folder in `figures`")
    home = folder_of((out or ".") if isinstance(result, Result) else result)
    return loaded.save_page(out or home, home)


NAME = "broca-index.html"


def view(folders: str | Path | Sequence[str | Path] = ".", *, out: str | Path = ".") -> Path:
    """Writes an index of all results in some folders and their subfolders.

    Args:
        folders: One folder or several.
        out: Folder for the index.

    Returns:
        The index, `broca-index.html`.

    Raises:
        BadInput: A folder does not exist, none holds a result, or `out` cannot be written.
    """
    roots: Any = folders if isinstance(folders, list | tuple) else [folders]
    place = check_out_folder(out)
    entries = []
    notes: list[str] = []
    for file, kind in sorted(_files(roots)):
        page = file.parent / _KINDS[kind].PAGE
        written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        try:
            result = read(file)
            if isinstance(result, Verification) and result.run_in(file.parent) is not None:
                page = file.parent / Localization.PAGE  # the report of the run shows it
            entry = entry_of(
                result,
                name=_relative(file.parent, Path.cwd()),
                page=quote(os.fsencode(_relative(page, place))) if page.is_file() else "",
                date=f"{written:%Y-%m-%d}",
            )
            entries.append(entry)
        except BadInput as error:
            notes.append(str(error))
    if not entries:
        names = ", ".join(f"'{root}'" for root in roots)
        raise BadInput(f"{names} holds no result of broca: give the out folders of commands")
    index = filled("index", entries=entries, notes=notes)
    write_beside(place / NAME, index.encode(errors="replace").decode())  # names may be no UTF-8
    return place / NAME


_KINDS = {kind.FILE: kind for kind in KINDS if kind.FILE and kind.PAGE}
"""The kinds of results that have a page, by the name of their file."""


def _files(roots: Sequence[str | Path]) -> set[tuple[Path, str]]:
    """Returns the files of results in the folders and their subfolders."""
    files = set()
    for root in roots:
        folder = place_of(root)
        if not folder.is_dir():
            raise BadInput(f"'{root}' is not a folder: give folders that contain results")
        for name in _KINDS:
            files |= {(file.absolute(), name) for file in folder.rglob(name)}
    return files


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path.absolute(), start.absolute())).as_posix()
