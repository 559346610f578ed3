"""Writes reproductions as files: JSON and CSV of each, and an HTML page of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from broca.results import Reproduction, write_beside
from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.reproduction import as_csv, as_json
from broca.studies.paper.reproduction_page import render_page


def write(reproductions: Sequence[Reproduction], folder: Path, stem: str) -> list[Path]:
    """Writes JSON and CSV of each, and a page of all, by temporary files that are renamed.

    Args:
        reproductions: The reproductions; those without rows are only on the page.
        folder: A folder that can be written.
        stem: End of the names of the files before the suffix, such as the model.

    Returns:
        The paths, the page last.
    """
    texts = {}
    for shown in reproductions:
        if shown.rows:
            texts[f"{shown.name}-{stem}.json"] = as_json(shown)
            texts[f"{shown.name}-{stem}.csv"] = as_csv(shown)
    several = "+".join(shown.name for shown in reproductions)
    name = ALL if len(reproductions) == len(NAMES) else several
    texts[f"{name}-{stem}.html"] = render_page(reproductions)
    for file, text in texts.items():
        write_beside(folder / file, text)
    return [folder / file for file in texts]
