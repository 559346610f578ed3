"""Reproductions as files: JSON and CSV of each, and an HTML page of all with their figures."""

import csv
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from broca.results.base import Interval
from broca.results.files import encode, write_beside
from broca.results.pages.charts import (
    Chart,
    Figure,
    IntervalChart,
    LineChart,
    Panels,
    Series,
)
from broca.results.pages.drawing import SERIES
from broca.results.pages.tables import Column, Table
from broca.results.pages.template import filled
from broca.results.runs import Reproduction
from broca.studies import ALL, NAMES
from broca.studies.study import Row

_Rows = Sequence[Row]


def write(reproductions: Sequence[Reproduction], folder: Path) -> list[Path]:
    """Writes JSON and CSV of each, and a page of all, by temporary files that are renamed.

    Args:
        reproductions: The reproductions; those without rows are only on the page.
        folder: A folder that can be written.

    Returns:
        The paths, the page last. They end with the last parts of the models' names.
    """
    stem = "+".join(Path(model).name or "model" for model in reproductions[0].models)
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
    """Renders figures and rows, a section for each reproduction; text is escaped."""
    parts = [
        {
            "name": shown.name, "shows": shown.shows, "notes": shown.notes,
            "figures": draw(shown), "rows": row_table(shown),
        }
        for shown in reproductions
    ]  # fmt: skip
    first = reproductions[0]
    return filled(
        "reproduction", package="broca.studies", parts=parts, models=first.models,
        settings=first.settings,
    )  # fmt: skip


def row_table(reproduction: Reproduction) -> Table:
    """Returns the rows in the columns with values: most models have no published figures."""
    rows = reproduction.records()
    names = [
        name for name in reproduction.columns if any(row[name] not in (None, "") for row in rows)
    ]
    return Table(
        reproduction.name,
        f"{len(rows):,} rows of {reproduction.name}",
        tuple(Column(name.replace("_", " "), show=_cell) for name in names),
        tuple(tuple(row[name] for name in names) for row in rows),
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def draw(reproduction: Reproduction) -> list[Figure]:
    """Returns a picture for each model, one for all in `scale`; none for the paper's tables."""
    name, rows = reproduction.name, reproduction.rows
    if name not in _DRAWINGS or not rows:
        return []
    chart_of, caption = _DRAWINGS[name]
    if name == "scale":
        return [Figure(name, caption, chart_of(rows))]
    several = len(reproduction.models) > 1
    figures = []
    for number, model in enumerate(reproduction.models):
        own = [row for row in rows if row["model"] == model]
        if own:
            said = f"{model}: {caption}" if several else caption
            figures.append(Figure(f"{name}-{number}", said, chart_of(own)))
    return figures


def _drop(row: Row) -> Interval:
    return 100 * Interval(row["drop"], row["drop_low"], row["drop_high"])


def _unique(rows: _Rows, column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows))


def _by_size(rows: _Rows) -> Chart:
    """Draws drops against the number of parameters, a line for each task."""
    rows = sorted(rows, key=lambda row: int(row["parameters"]))
    lines = tuple(
        Series.line(
            number, task, [(row["parameters"], _drop(row)) for row in rows if row["task"] == task]
        )
        for number, task in enumerate(_unique(rows, "task"))
    )
    return LineChart(lines, "parameters", "points lost", logarithmic=True)


def _by_k(rows: _Rows) -> Chart:
    """Draws a panel for each task: drops without the first k heads, by k."""
    tasks, charts = _unique(rows, "task"), []
    for task in tasks:
        lines = []
        for number, (column, role, label) in enumerate((
            ("drop", "harm", "the task"),
            ("same_skill_drop", "series1", "its skill"),
            ("general_drop", "intact", "the others"),
        )):  # fmt: skip
            points = [  # nothing is ablated at k = 0, and nothing can be lost
                (row["k"], _drop(row) if column == "drop" and row["k"] else 100 * row[column])
                for row in rows
                if row["task"] == task and column in row
            ]
            if points:
                lines.append(Series.line(number, label, points, role))
        charts.append(LineChart(tuple(lines), "heads ablated", "points lost", height=220))
    return Panels(tuple(tasks), tuple(charts))


def _scores(rows: _Rows, *, by: str, label: str) -> Chart:
    """Draws each task's score, intact and without each list of heads; a column names the list."""
    tasks, series = _unique(rows, "measured_on"), []
    for number, heads in enumerate(_unique(rows, by)):
        own = [row for row in rows if row[by] == heads]
        points = tuple((tasks.index(row["measured_on"]), row["ablated"]) for row in own)
        if heads == "none":
            series.append(Series("intact", "intact", points, "ring"))
        else:
            role, shape = SERIES[(number - 1) % len(SERIES)], "osD^x"[number % 5]
            series.append(Series(label.format(heads), role, points, shape))
    return IntervalChart(tuple(tasks), tuple(series), "score")


_DRAWINGS: dict[str, tuple[Callable[[_Rows], Chart], str]] = {
    "figure1": (
        partial(_scores, by="heads_of", label="without heads of {}"),
        "scores, intact and without each list of heads",
    ),
    "figure2": (_by_k, "points lost without the first k heads"),
    "figure3": (
        partial(_scores, by="heads", label="without {}"), "scores, intact and without each head",
    ),
    "figure4": (
        partial(_scores, by="heads", label="without heads of {}"),
        "scores, intact and without each task's heads",
    ),
    "scale": (_by_size, "points lost by the size of the model"),
}  # fmt: skip
"""The drawing function and caption of each figure."""
