"""Repeats tables of the paper on any model and its tasks, beside the published figures.

Every table is rows of plain values, so that JSON and CSV say the same. Figures of the paper stand
in columns of their own, and only where the model is the same.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from broca.api import localize, other_tasks
from broca.errors import BadInput, UnknownName, nearest
from broca.models import GatedModel
from broca.published import model_like, published_lists, published_results
from broca.tasks import Catalog
from broca.verify import Scope
from broca.workbench import Workbench

Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What all tables share.

    Attributes:
        tasks: Tasks to localize; all shipped ones for a shipped model.
        include_path: A folder of lm-eval YAML tasks to add.
        rows: Rows of each search; by default what the method needs.
        items: Items of each search.
        limit: Most report items of each task.
        k: Heads of each list.
        seed: Seed of everything random.
    """

    tasks: tuple[str, ...]
    include_path: str | Path | None = None
    rows: int | None = None
    items: int = 100
    limit: int | None = None
    k: int = 5
    seed: int = 0


class Study:
    """One model, its tasks, and the heads found so far: tables share them.

    Args:
        model: The model.
        settings: What all tables share.
        report: Told which stage is going on.
    """

    def __init__(
        self, model: GatedModel, settings: Settings, report: Callable[[str], None]
    ) -> None:
        self.model, self.settings, self._report = model, settings, report
        self._found: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...], int]] = {}
        self._benches: dict[str, Workbench] = {}
        self.published = model_like(
            layers=model.structure.layers, heads=model.heads, name=model.name
        )

    def found(self, task: str, method: str = "cs-stratified") -> tuple[tuple[str, ...], int]:
        """The heads that a method selects for a task, and its rows."""
        heads, _, rows = self._search(task, method)
        return heads, rows

    def order(self, task: str) -> tuple[str, ...]:
        """The first ten heads of the ranking whose loss harms the task."""
        return self._search(task, "cs-stratified")[1]

    def _search(self, task: str, method: str) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        key = (task, method)
        if key not in self._found:
            self._report(f"{method} on {task}")
            s = self.settings
            result = localize(
                self.model, task=task, others=[], include_path=s.include_path, method=method,
                rows=s.rows, k=s.k, items=s.items, seed=s.seed, verify=False,
            )  # fmt: skip
            harmful = tuple(one.name for one in result.ranking if one.effect < 0)[:10]
            self._found[key] = (result.selected, harmful, result.cost.rows)
        return self._found[key]

    def bench(self, task: str) -> Workbench:
        """The task with all others of the study."""
        if task not in self._benches:
            s = self.settings
            self._benches[task] = Workbench.build(
                self.model, task, others=s.tasks, include_path=s.include_path, limit=s.limit
            )
        return self._benches[task]

    def scores(self, task: str, heads: Sequence[str]) -> Row:
        """Task and general score, intact and without some heads."""
        bench = self.bench(task)
        examiner = bench.examiner(Scope(seed=self.settings.seed, resamples=500))
        own, *others = examiner.drops_of(heads, [task, *bench.others])
        row: Row = {
            "intact": own.before, "ablated": own.after, "drop": own.drop.value,
            "drop_low": own.drop.low, "drop_high": own.drop.high, "p": own.p,
        }  # fmt: skip
        if others:
            row["general_intact"] = float(np.mean([one.before for one in others]))
            row["general_ablated"] = float(np.mean([one.after for one in others]))
        return row


def head_lists(study: Study) -> list[Row]:
    """Table 9: the heads of every task, beside the published ones."""
    rows = []
    for task in study.settings.tasks:
        heads, _ = study.found(task)
        row: Row = {"task": task, "heads": " ".join(heads), "published": "", "shared": ""}
        for one in published_lists():
            own = study.published is not None and one.model == study.published.name
            if own and one.task == task and one.method == "css":
                row["published"] = " ".join(one.heads)
                row["shared"] = len(set(heads) & set(one.heads))
        rows.append(row)
    return rows


def top_heads(study: Study) -> list[Row]:
    """Table 2: what the selected heads cost the task, and what they cost in general."""
    rows = []
    for task in study.settings.tasks:
        heads, _ = study.found(task)
        rows.append({"task": task, "heads": " ".join(heads), **study.scores(task, heads)})
        if study.published is not None:
            top = published_results(study.published.name).get("top5", {})
            if task in top.get("tasks", ()):
                rows[-1]["published_intact"] = top["intact"][top["tasks"].index(task)]
    return rows


def capability(study: Study) -> list[Row]:
    """Table 3: heads found on one task, measured on the others of its capability."""
    rows = []
    for task in study.settings.tasks:
        same = study.bench(task).same_skill
        if not same:
            continue
        heads, _ = study.found(task)
        rows += [
            {"found_on": task, "measured_on": other, **study.scores(other, heads)}
            for other in (task, *same)
        ]
    return rows


def methods(study: Study) -> list[Row]:
    """Table 4: every method of the paper, with its rows."""
    rows = []
    for task in study.settings.tasks:
        for method in ("greedy", "one-shot", "cs-bernoulli", "cs-stratified"):
            heads, cost = study.found(task, method)
            rows.append(
                {
                    "task": task, "method": method, "heads": " ".join(heads), "rows": cost,
                    **study.scores(task, heads),
                }
            )  # fmt: skip
    return rows


def sweep(study: Study) -> list[Row]:
    """Table 6 and figure 2: the first k heads, k from 0 to 10."""
    rows = []
    for task in study.settings.tasks:
        order = study.order(task)
        for k in range(len(order) + 1):
            row: Row = {"task": task, "k": k, **study.scores(task, order[:k])}
            if study.published is not None:
                table = published_results(study.published.name).get("k_sweep", {})
                row["published"] = table[task][k] if task in table else ""
            rows.append(row)
    return rows


def groups(study: Study) -> list[Row]:
    """How often two selected heads share keys and values, beside a random draw of the layer."""
    per_group = study.model.heads // study.model.kv_heads
    rows = []
    for task in study.settings.tasks:
        heads = [
            study.model.components[c] for c in study.model.components.columns(study.found(task)[0])
        ]
        same_layer = [(a, b) for a, b in combinations(heads, 2) if a.layer == b.layer]
        shared = sum(
            (a.index or 0) // per_group == (b.index or 0) // per_group for a, b in same_layer
        )
        rows.append(
            {
                "task": task, "pairs_in_one_layer": len(same_layer), "pairs_in_one_group": shared,
                "expected": len(same_layer) * (per_group - 1) / max(1, study.model.heads - 1),
            }
        )  # fmt: skip
    return rows


TABLES: dict[str, Callable[[Study], list[Row]]] = {
    "table2": top_heads,
    "table3": capability,
    "table4": methods,
    "table6": sweep,
    "table9": head_lists,
    "gqa": groups,
}
"""What can be repeated."""


def reproduce(
    name: str,
    model: GatedModel,
    *,
    tasks: str | Sequence[str] = "auto",
    include_path: str | Path | None = None,
    rows: int | None = None,
    items: int = 100,
    limit: int | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Repeats one table of the paper.

    Args:
        name: A key of `TABLES`.
        model: The model, with heads as components.
        tasks: Tasks to localize, each beside the others; `auto` as in `localize`.
        include_path: A folder of lm-eval YAML tasks to add.
        rows: Rows of each search.
        items: Items of each search.
        limit: Most report items of each task.
        seed: Seed of everything random.
        report: Told which stage is going on.

    Raises:
        BrocaError: An unknown table or task, or no tasks.
    """
    if name not in TABLES:
        raise UnknownName(
            f"'{name}' cannot be reproduced{nearest(name, TABLES)}; known are {', '.join(TABLES)}"
        )
    names = other_tasks("", tasks, model.name, Catalog(include_path))
    if not names:
        raise BadInput("no tasks are named: give --tasks T1,T2")
    settings = Settings(
        tuple(names), include_path=include_path, rows=rows, items=items, limit=limit, seed=seed
    )
    return TABLES[name](Study(model, settings, report))


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV, columns in the order of their first appearance."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """Rows as indented JSON."""
    return json.dumps(list(rows), indent=2) + "\n"
