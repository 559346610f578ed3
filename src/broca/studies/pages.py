"""Reproductions as files: JSON and CSV of each, and an HTML page of all."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from broca.results.files import encode, write_beside
from broca.results.pages.tables import Column, Table
from broca.results.pages.template import filled
from broca.results.runs import Reproduction
from broca.studies import ALL, NAMES


def write(reproductions: Sequence[Reproduction], folder: Path) -> list[Path]:
    """Writes JSON and CSV of each, and a page of all, by temporary files that are renamed.

    Args:
        reproductions: The reproductions; those without rows are only on the page.
        folder: A folder that can be written.

    Returns:
        The paths, the page last. They end with the last parts of the models' names.
    """
    stem = "+".join(Path(model).name or "model" for model in reproductions[0].models)[:100]
    texts = {}
    for shown in reproductions:
        if shown.rows:
            texts[f"{shown.name}-{stem}.json"] = encode(shown)
            texts[f"{shown.name}-{stem}.csv"] = as_csv(shown)
    several = "+".join(shown.name for shown in reproductions)
    name = ALL if len(reproductions) == len(NAMES) else several
    texts[f"{name}-{stem}.html"] = render_page(reproductions)
    for file, text in texts.items():
        write_beside(folder / file, text)
    return [folder / file for file in texts]


def as_csv(reproduction: Reproduction) -> str:
    """Returns the rows as CSV; a cell is empty if a row lacks the column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, reproduction.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(reproduction.rows)
    return text.getvalue()


def render_page(reproductions: Sequence[Reproduction]) -> str:
    """Renders the rows, a section for each reproduction; text is escaped.

    Columns without values are left out: most models have no published figures.
    """
    parts = []
    for shown in reproductions:
        rows, name = shown.records(), shown.name
        columns = [
            column for column in shown.columns if any(row[column] not in (None, "") for row in rows)
        ]
        headings = tuple(Column(column.replace("_", " ")) for column in columns)
        values = tuple(tuple(row[column] for column in columns) for row in rows)
        table = Table(name, f"{len(rows):,} rows of {name}", headings, values)
        parts.append({"name": name, "shows": shown.shows, "notes": shown.notes, "rows": table})
    first = reproductions[0]
    return filled(
        "reproduction", package="broca.studies", parts=parts, models=first.models,
        settings=first.settings,
    )  # fmt: skip
