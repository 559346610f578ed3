"""The figures: rows that a drawing needs and the tables do not have."""

from __future__ import annotations

from broca.studies.paper import beside
from broca.studies.paper.record import Row
from broca.studies.paper.study import Study
from broca.studies.paper.tables import require_knowledge, shared_heads, sweep


def radar(study: Study) -> list[Row]:
    """Figure 1: every task, intact and without the heads of the first task of each skill."""
    firsts: dict[str, str] = {}
    for task in study.localized:
        firsts.setdefault(study.skill(task), task)
    rows = []
    for task in ("", *firsts.values()):
        drops = study.drops(study.found(task).heads if task else (), study.tasks)
        for name, one in drops.items():
            row: Row = {
                "heads_of": task or "none", "measured_on": name,
                "intact": one.before, "ablated": one.after,
            }  # fmt: skip
            value = beside.top5(study.published, task, name)
            if value is not None:
                row["published"] = value
            rows.append(row)
    return rows


def longer_sweep(study: Study) -> list[Row]:
    """Figure 2: k from 0 to 10."""
    return sweep(study, largest=10)


def shared_bars(study: Study) -> list[Row]:
    """Figure 3: the heads that knowledge tasks share, on each of them and on the rest."""
    return [
        row
        for head in ("", *shared_heads(study))
        for row in _beside_knowledge(study, head or "none", (head,) if head else (), head)
    ]


def own_bars(study: Study) -> list[Row]:
    """Figure 4: each knowledge task's own heads, on each of them and on the rest."""
    tasks = [task for task in require_knowledge(study) if task in study.localized]
    rows = _beside_knowledge(study, "none", (), "")
    for task in tasks:
        rows += _beside_knowledge(study, task, study.found(task).heads, task)
    return rows


def _beside_knowledge(
    study: Study, label: str, heads: tuple[str, ...], published: str
) -> list[Row]:
    """Scores of the knowledge tasks and the mean of the general ones without some heads."""
    own = study.knowledge
    general = study.general(own[0])
    drops = study.drops(heads, [*own, *general])
    measured = {task: (drops[task].before, drops[task].after) for task in own}
    if general:
        before = sum(drops[one].before for one in general) / len(general)
        after = sum(drops[one].after for one in general) / len(general)
        measured["general"] = (before, after)
    rows = []
    for name, (intact, ablated) in measured.items():
        row: Row = {"heads": label, "measured_on": name, "intact": intact, "ablated": ablated}
        as_published = "general_without_mmlu" if name == "general" else name
        value = beside.knowledge(study.published, published, as_published)
        if value is not None:
            row["published"] = value
        rows.append(row)
    return rows
