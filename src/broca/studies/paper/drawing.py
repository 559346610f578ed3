"""Draws reproductions from their rows, with a figure for each model if needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from broca import reports
from broca.results import Reproduction
from broca.studies.paper.reproduction import Row

_TOTALS = ("mean", "knowledge_mean", "other_mean")

TableRows = Sequence[Row]


def draw(reproduction: Reproduction) -> list[reports.Figure]:
    """Returns the figures of a reproduction; none for a list of names."""
    if reproduction.name not in _DRAWINGS or not reproduction.rows:
        return []
    chart_of, caption = _DRAWINGS[reproduction.name]
    if reproduction.name == "scale":
        return [reports.Figure("scale", caption, chart_of(reproduction.rows))]
    by_model = {
        model: [row for row in reproduction.rows if row["model"] == model]
        for model in reproduction.models
    }
    several = len(reproduction.models) > 1
    return [
        reports.Figure(
            f"{reproduction.name}-{number}",
            f"{model}: {caption}" if several else caption,
            chart_of(rows),
        )
        for number, (model, rows) in enumerate(by_model.items())
        if any(row.get("head") != "none" for row in rows)  # only the intact model: no figure
    ]


def task_and_general(rows: TableRows) -> reports.Chart:
    """Draws the drops of the task, with intervals, and of the others."""
    return _drops(rows, [str(row["task"]) for row in rows])


def found_and_measured(rows: TableRows) -> reports.Chart:
    """Draws the drops for heads of one task measured on another."""
    return _drops(rows, [f"{row['found_on']} on {row['measured_on']}" for row in rows])


def cost_of_methods(rows: TableRows) -> reports.Chart:
    """Draws the specific drop against the rows of the search."""
    lines = []
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        chosen = [row for row in rows if row["method"] == method and row["rows"] > 0]
        points = [
            reports.Point(
                100 * (row["drop"] - row.get("general_drop", 0.0)),
                title=f"{row['task']}: {row['heads']}",
            )
            for row in chosen
        ]
        across = tuple(float(row["rows"]) for row in chosen)
        role = reports.SERIES[number % len(reports.SERIES)]
        lines.append(reports.Line(str(method), across, tuple(points), role, number, joined=False))
    return reports.LineChart(
        tuple(lines), "rows of the search", "points lost beyond the others", logarithmic=True
    )


def lines_by_k(rows: TableRows) -> reports.Chart:
    """Draws a panel for each task: drops without the first k heads, by k."""
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    charts = []
    for task in tasks:
        chosen = [row for row in rows if row["task"] == task]
        lines = []
        for number, (column, role, label) in enumerate((
            ("drop", "harm", "the task"),
            ("same_skill_drop", "series1", "its skill"),
            ("general_drop", "intact", "the others"),
        )):  # fmt: skip
            rows_of_line = [row for row in chosen if column in row]
            if rows_of_line:
                points = tuple(
                    _drop(row)
                    if column == "drop" and row["k"]
                    else reports.Point(100 * row[column])
                    for row in rows_of_line
                )  # nothing is ablated at k = 0, and nothing can be lost
                across = tuple(float(row["k"]) for row in rows_of_line)
                lines.append(reports.Line(label, across, points, role, number))
        charts.append(reports.LineChart(tuple(lines), "heads ablated", "points lost", height=150))
    return reports.Panels(tuple(tasks), tuple(charts), f"Points lost on {len(tasks)} tasks by k")


def by_head(rows: TableRows) -> reports.Chart:
    """Draws the matrix head x task of drops, relative to the intact row if there is one."""
    columns = [name for name in rows[0] if name not in ("model", "head", *_TOTALS)]
    intact = rows[0] if rows[0]["head"] == "none" else None
    shown = [row for row in rows if row["head"] != "none"] or list(rows)
    lost = [
        [100 * (row[name] if intact is None else intact[name] - row[name]) for name in columns]
        for row in shown
    ]
    return reports.Matrix(
        tuple(str(row["head"]) for row in shown),
        tuple(columns),
        tuple(tuple(-value for value in line) for line in lost),
        100.0,  # the same colours for every model
        "change of the score in points",
        texts=tuple(tuple(f"{value:.0f}" for value in line) for line in lost),
    )


def radar(rows: TableRows) -> reports.Chart:
    """Draws a panel for each list of heads: scores of every task, intact and without the list."""
    lists = [str(name) for name in dict.fromkeys(row["heads_of"] for row in rows) if name != "none"]
    charts = []
    for name in lists:
        chosen = [row for row in rows if row["heads_of"] == name]
        series = tuple(
            reports.Series(label, role, _points(chosen, label), shape)
            for label, role, shape in (
                ("intact", "intact", reports.SHAPES[5]),
                ("ablated", "harm", reports.SHAPES[0]),
            )
        )
        names = tuple(str(row["measured_on"]) for row in chosen)
        charts.append(reports.IntervalChart(names, series, "score", joined=True, bold=(name,)))
    titles = tuple(f"without heads of {name}" for name in lists)
    return reports.Panels(titles, tuple(charts), f"Scores without the heads of {len(lists)} tasks")


def bars_by_head(rows: TableRows) -> reports.Chart:
    """Draws each task's score, intact and without each head."""
    return _scores(rows, "without {}")


def bars_by_list(rows: TableRows) -> reports.Chart:
    """Draws each task's score, intact and without each task's heads."""
    return _scores(rows, "without heads of {}")


def pairs(rows: TableRows) -> reports.Chart:
    """Draws the number of pairs of heads in one group, beside the number under permutations."""
    sources = len({row["source"] for row in rows})
    labels = tuple(
        f"{row['skill']} ({row['source']})" if sources > 1 else str(row["skill"]) for row in rows
    )
    measured = tuple(
        (n, reports.Point(float(row["pairs_in_one_group"]), title=f"p {row['p']:.2g}"))
        for n, row in enumerate(rows)
    )
    expected = tuple((n, reports.Point(float(row["expected"]))) for n, row in enumerate(rows))
    series = (
        reports.Series("pairs in one group", "harm", measured, "diamond"),
        reports.Series("expected", "intact", expected, "ring"),
    )
    return reports.IntervalChart(labels, series, "pairs of heads", joined=True)


def against_size(rows: TableRows) -> reports.Chart:
    """Draws drops against the number of parameters, a line for each task."""
    lines = []
    for number, task in enumerate(dict.fromkeys(row["task"] for row in rows)):
        chosen = sorted(
            (row for row in rows if row["task"] == task), key=lambda row: int(row["parameters"])
        )
        across = tuple(float(row["parameters"]) for row in chosen)
        points = tuple(_drop(row, title=str(row["model"])) for row in chosen)
        lines.append(
            reports.Line(
                str(task), across, points, reports.SERIES[number % len(reports.SERIES)], number
            )
        )
    return reports.LineChart(tuple(lines), "parameters", "points lost", logarithmic=True)


def _scores(rows: TableRows, label_of: str) -> reports.Chart:
    tasks = list(dict.fromkeys(str(row["measured_on"]) for row in rows))
    series = []
    for number, label in enumerate(dict.fromkeys(str(row["heads"]) for row in rows)):
        intact = label == "none"
        points = tuple(
            (tasks.index(row["measured_on"]), reports.Point(row["ablated"]))
            for row in rows
            if row["heads"] == label
        )
        role = "intact" if intact else reports.SERIES[(number - 1) % len(reports.SERIES)]
        name = "intact" if intact else label_of.format(label)
        shape = reports.SHAPES[5] if intact else reports.SHAPES[number % 5]
        series.append(reports.Series(name, role, points, shape))
    return reports.IntervalChart(tuple(tasks), tuple(series), "score")


def _drops(rows: TableRows, labels: Sequence[str]) -> reports.Chart:
    series = [reports.Series("task", "harm", tuple((n, _drop(row)) for n, row in enumerate(rows)))]
    general = tuple(
        (n, reports.Point(100 * row["general_drop"]))
        for n, row in enumerate(rows)
        if "general_drop" in row
    )
    if general:
        series.append(reports.Series("general", "intact", general, "ring"))
    return reports.IntervalChart(tuple(labels), tuple(series), "points lost")


def _points(rows: TableRows, column: str) -> tuple[tuple[int, reports.Point], ...]:
    return tuple((n, reports.Point(row[column])) for n, row in enumerate(rows))


def _drop(row: Row, *, title: str = "") -> reports.Point:
    """Returns a drop in points, with its interval."""
    return reports.Point(100 * row["drop"], 100 * row["drop_low"], 100 * row["drop_high"], title)


_DRAWINGS: MappingProxyType[str, tuple[Callable[[TableRows], reports.Chart], str]] = (
    MappingProxyType(
        {
            "table2": (task_and_general, "what each task loses without its heads, and the others"),
            "table3": (found_and_measured, "heads of one task, measured on another"),
            "table4": (cost_of_methods, "what each method finds for its rows"),
            **dict.fromkeys(
                ("table5", "table7", "table8"), (by_head, "points lost without each head")
            ),
            **dict.fromkeys(
                ("table6", "figure2"), (lines_by_k, "points lost without the first k heads")
            ),
            "figure1": (radar, "scores, intact and without each list of heads"),
            "figure3": (bars_by_head, "scores, intact and without each head"),
            "figure4": (bars_by_list, "scores, intact and without each task's heads"),
            "gqa": (pairs, "pairs of heads that share a key/value head"),
            "scale": (against_size, "points lost by the size of the model"),
        }
    )
)
"""The drawing function and caption of each name; a list of names has none."""
