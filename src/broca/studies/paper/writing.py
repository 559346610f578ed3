"""Reproductions as files: JSON and CSV of each, one HTML page of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from broca.results.files import write_beside
from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.page import render_page
from broca.studies.paper.record import Reproduction, as_csv, as_json


def write(found: Sequence[Reproduction], folder: Path, stem: str) -> list[Path]:
    """Writes JSON and CSV of each, and one page of all; each beside its place, then renamed.

    Args:
        found: The reproductions; those without rows are on the page alone.
        folder: A folder that can be written.
        stem: What the names of the files end with, before the suffix, such as the model.

    Returns:
        The paths, the page last.
    """
    paths = []
    for one in found:
        for suffix, text in ((".json", as_json(one)), (".csv", as_csv(one))) if one.rows else ():
            paths.append(folder / f"{one.name}-{stem}{suffix}")
            write_beside(paths[-1], text)
    name = ALL if len(found) == len(NAMES) else "+".join(one.name for one in found)
    paths.append(folder / f"{name}-{stem}.html")
    write_beside(paths[-1], render_page(found))
    return paths
