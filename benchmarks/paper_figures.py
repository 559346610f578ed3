"""Tables and figures of `broca reproduce` on their page: `python benchmarks/paper_figures.py DIR`.

    broca reproduce table2,table3,figure1,figure2,figure3,figure4 MODEL... --out DIR
    python benchmarks/paper_figures.py DIR [--to docs/paper] [--page docs/reproduce.md]

The script reads the newest JSON file of each name in DIR. It draws `figure1.png` to `figure4.png`,
with a row of panels for each model, and writes the rows of tables 2 to 8 into the page, below
their titles; the sentences beside them are left as they are. It needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from broca.results.files import check_out_folder, write_beside

Row = dict[str, Any]
Rows = Sequence[Row]

HERE = Path(__file__).parent
INTACT, GRID, MUTED = "#9aa5b1", "#e4e7eb", "#7b8794"
COLOURS = ("#2b6cb0", "#c53030", "#2f855a", "#b7791f", "#6b46c1", "#0987a0", "#97266d")
DPI = 80


def radars(models: dict[str, Rows]) -> Figure:
    """Draws figure 1: a radar for the heads of each skill's first task over the intact model's."""
    sets = {
        model: [task for task in dict.fromkeys(row["heads_of"] for row in rows) if task != "none"]
        for model, rows in models.items()
    }
    across = max(map(len, sets.values()))
    figure, panels = pyplot.subplots(
        len(models), across, figsize=(2.6 * across, 2.75 * len(models)), squeeze=False,
        subplot_kw={"projection": "polar"},
    )  # fmt: skip
    for line, (model, rows) in zip(panels, models.items(), strict=True):
        for panel in line[len(sets[model]) :]:
            panel.set_visible(False)
        for number, (panel, found_on) in enumerate(zip(line, sets[model], strict=False)):
            set_rows = [row for row in rows if row["heads_of"] == found_on]
            angles = np.linspace(0, 2 * np.pi, len(set_rows), endpoint=False)
            for values, colour in (("intact", INTACT), ("ablated", COLOURS[number % 7])):
                lengths = [row[values] for row in set_rows]
                closed = [*lengths, lengths[0]], [*angles, angles[0]]
                panel.plot(closed[1], closed[0], color=colour, linewidth=1.6)
                panel.fill(closed[1], closed[0], color=colour, alpha=0.12)
            panel.set_xticks(angles, [row["measured_on"].replace("_", "\n") for row in set_rows])
            panel.tick_params(axis="x", labelsize=7, pad=1)
            for text, angle in zip(panel.get_xticklabels(), angles, strict=True):
                aside = -np.sin(angle)  # zero is at the top, and angles increase to the left
                text.set_ha("center" if abs(aside) < 0.1 else "left" if aside > 0 else "right")
            panel.set_ylim(0, 1)
            panel.set_yticks([0.5, 1.0], ["", ""])
            panel.set_theta_offset(np.pi / 2)
            panel.grid(color=GRID)
            panel.spines["polar"].set_color(GRID)
            panel.set_title(f"{model}\nwithout the heads of {found_on}", fontsize=8, pad=8)
    return figure


def sweeps(models: dict[str, Rows]) -> Figure:
    """Draws figure 2: points lost with the first k heads ablated, a panel for each task."""
    tasks = list(dict.fromkeys(row["task"] for rows in models.values() for row in rows))
    figure, panels = pyplot.subplots(
        len(models), len(tasks), figsize=(2.5 * len(tasks), 2.5 * len(models)), squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for line, (model, rows) in zip(panels, models.items(), strict=True):
        for panel, task in zip(line, tasks, strict=True):
            task_rows = [row for row in rows if row["task"] == task]
            _by_k(panel, task_rows, "drop", COLOURS[1], "the task")
            _by_k(panel, task_rows, "same_skill_drop", COLOURS[0], "its skill", linestyle="--")
            _by_k(panel, task_rows, "general_drop", MUTED, "the others", linestyle=":")
            if task_rows:
                low, high = (
                    [100 * row[end] for row in task_rows] for end in ("drop_low", "drop_high")
                )
                panel.fill_between(
                    [row["k"] for row in task_rows], low, high,
                    color=COLOURS[1], alpha=0.15, linewidth=0,
                )  # fmt: skip
            panel.set_title(f"{model}: {task}", fontsize=8)
            _plain(panel)
        line[0].set_ylabel("points lost", fontsize=8)
    for panel in panels[-1]:
        panel.set_xlabel("heads ablated", fontsize=8)
        panel.set_xticks(range(0, 11, 2))
    _legend(figure, panels[0])
    return figure


def bars(models: dict[str, Rows]) -> Figure:
    """Draws figures 3 and 4: groups of bars, the intact model's first."""
    figure, panels = pyplot.subplots(
        1, len(models), figsize=(5.2 * len(models), 3.2), squeeze=False, sharey=True
    )
    for panel, (model, rows) in zip(panels[0], models.items(), strict=True):
        sets = list(dict.fromkeys(row["heads"] for row in rows))
        tasks = list(dict.fromkeys(row["measured_on"] for row in rows))
        width = 0.8 / len(sets)
        for number, heads in enumerate(sets):
            scores = {row["measured_on"]: row["ablated"] for row in rows if row["heads"] == heads}
            panel.bar(
                np.arange(len(tasks)) + (number - (len(sets) - 1) / 2) * width,
                [scores[task] for task in tasks], width=0.92 * width,
                color=INTACT if heads == "none" else COLOURS[(number - 1) % 7],
                label="intact" if heads == "none" else f"without {_set_name(heads)}",
            )  # fmt: skip
        panel.set_xticks(range(len(tasks)), tasks)
        panel.set_ylim(0, 1)
        panel.set_title(model, fontsize=9)
        panel.legend(
            fontsize=7, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12)
        )
        _plain(panel)
    panels[0][0].set_ylabel("score", fontsize=8)
    return figure


def _points(share: float) -> str:
    return f"{round(100 * share)}"  # rounds to a whole number, which has no sign at 0


def _lost(row: Row) -> str:
    return f"{_points(row['drop'])} [{_points(row['drop_low'])}, {_points(row['drop_high'])}]"


def _table2(row: Row) -> list[str]:
    scores = [f"{row[name]:.3f}" for name in ("intact", "ablated")]
    return [row["task"], row["heads"], *scores, _lost(row), _points(row["general_drop"])]


def _table3(row: Row) -> list[str]:
    return [row["found_on"], row["measured_on"], _lost(row), _points(row["general_drop"])]


def _table4(row: Row) -> list[str]:
    rows, general = f"{row['rows']:,}", _points(row["general_drop"])
    return [row["task"], row["method"], rows, row["heads"], _lost(row), general]


def _table5(row: Row) -> list[str]:
    return [row["head"], *(_points(row[name]) for name in row if name not in ("model", "head"))]


def _table7(row: Row) -> list[str]:
    return [
        row["head"],
        *(f"{row[name]:.3f}" for name in row if name not in ("model", "head", "mean")),
    ]


def _table8(row: Row) -> list[str]:
    return [row["head"], f"{row['knowledge_mean']:.3f}", f"{row['other_mean']:.3f}"]


TABLES: Mapping[str, tuple[str, Callable[[Row], list[str]]]] = {
    "table2": ("**Tables 2 and 9", _table2),
    "table3": ("**Table 3.", _table3),
    "table4": ("**Table 4**", _table4),
    "table5": ("**Table 5.", _table5),
    "table7": ("**Table 7.", _table7),
    "table8": ("**Table 8.", _table8),
}
"""The title of each table on the page, and the cells of a row beside its model."""
MOST_K = 5
"""Number of columns of table 6."""


def table_lines(name: str, rows: Rows) -> list[str]:
    """Returns the lines of a table of the page."""
    cells: list[list[str]]
    if name == "table6":
        lists: dict[tuple[str, str], dict[int, Row]] = {}
        for row in rows:
            lists.setdefault((row["model"], row["task"]), {})[row["k"]] = row
        cells = [
            [*key, *(_lost(of_k[k]) if k in of_k else "" for k in range(1, MOST_K + 1)),
             _points(of_k[max(of_k)]["general_drop"])]
            for key, of_k in lists.items()
        ]  # fmt: skip
    else:
        cells = [
            [row["model"], *TABLES[name][1](row)]
            for row in rows
            if name != "table3" or row["found_on"] != row["measured_on"]
        ]
    return ["| " + " | ".join(line) + " |" for line in cells]


def write_tables(folder: Path, page: Path) -> list[str]:
    """Writes the tables whose files exist into the page; returns their names.

    Raises:
        ValueError: The page lacks the title of a table.
    """
    lines, written = page.read_text(encoding="utf-8").split("\n"), []
    titles = {name: title for name, (title, _) in TABLES.items()} | {"table6": "**Table 6."}
    for name, title in titles.items():
        file = newest(folder, name)
        if file is None:
            continue
        start = next((n for n, line in enumerate(lines) if line.startswith(title)), len(lines))
        rules = [n for n in range(start, len(lines)) if lines[n].startswith("|---")]
        if not rules:
            raise ValueError(f"{page} has no table with the title '{title}'")
        first = end = rules[0] + 1
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        rows = [row for rows in rows_of(file).values() for row in rows]
        lines[first:end] = table_lines(name, rows)
        written.append(name)
    write_beside(page, "\n".join(lines))
    return written


DRAWN = {"figure1": radars, "figure2": sweeps, "figure3": bars, "figure4": bars}


def newest(folder: Path, name: str) -> Path | None:
    """Returns the newest JSON file of a table or a figure, if there is one."""
    files = sorted(folder.glob(f"{name}-*.json"), key=lambda file: file.stat().st_mtime)
    return files[-1] if files else None


def rows_of(file: Path) -> dict[str, Rows]:
    """Returns the rows of a JSON file by model; models without rows are left out."""
    data = json.loads(file.read_text(encoding="utf-8"))
    by_model = {
        model: [row for row in data["rows"] if row["model"] == model] for model in data["models"]
    }
    return {model: rows for model, rows in by_model.items() if rows}


def _by_k(
    panel: Axes, rows: Rows, column: str, colour: str, label: str, *, linestyle: str = "-"
) -> None:
    drawn = [row for row in rows if column in row]
    panel.plot(
        [row["k"] for row in drawn], [100 * row[column] for row in drawn],
        color=colour, linestyle=linestyle, linewidth=1.6, label=label,
    )  # fmt: skip


def _set_name(label: str) -> str:
    """Returns a head's name unchanged, and for a task "heads of" it."""
    return label if re.fullmatch(r"L\d+H\d+", label) else f"heads of {label}"


def _plain(panel: Axes) -> None:
    panel.grid(axis="y", color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=7, length=2)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    lines, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        lines, labels, loc="upper center", ncols=3, fontsize=8, frameon=False,
        bbox_to_anchor=(0.5, 0.0),
    )  # fmt: skip


def draw(folder: Path, to: Path) -> list[Path]:
    """Draws the figures whose files exist.

    Returns:
        Paths of the pictures.
    """
    paths = []
    for name, drawing in DRAWN.items():
        file = newest(folder, name)
        models = rows_of(file) if file else {}
        if not models:
            continue
        figure = drawing(models)
        figure.tight_layout()
        paths.append(to / f"{name}.png")
        figure.savefig(paths[-1], dpi=DPI, bbox_inches="tight", metadata={"Software": ""})
        pyplot.close(figure)
    return paths


def main() -> None:
    """Draws the figures of one folder into another, and writes its tables into the page."""
    docs = HERE.parent / "docs"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="Out folder of `broca reproduce`.")
    parser.add_argument("--to", type=Path, default=docs / "paper")
    parser.add_argument("--page", type=Path, default=docs / "reproduce.md")
    options = parser.parse_args()
    made = [*draw(options.folder, check_out_folder(options.to))]
    print(*made, *write_tables(options.folder, options.page), sep="\n")
    if not made:
        raise SystemExit(
            f"'{options.folder}' holds no figure1-*.json to figure4-*.json: run `broca reproduce "
            "figure1,figure2,figure3,figure4 MODEL --out DIR` first"
        )


if __name__ == "__main__":
    main()
