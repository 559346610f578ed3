"""The rows of figures that the tables do not have."""

from __future__ import annotations

from broca.studies.paper import published_figures as published
from broca.studies.paper.reproduction import Row
from broca.studies.paper.study import Study
from broca.studies.paper.table_rows import require_knowledge, shared_heads, sweep


def radar(study: Study) -> list[Row]:
    """Figure 1: every task, intact and without the heads of the first task of each skill."""
    firsts: dict[str, str] = {}
    for task in study.localized:
        firsts.setdefault(study.skill(task), task)
    rows = []
    for task in ("", *firsts.values()):
        drops = study.drops(study.list_of(task).heads if task else (), study.tasks)
        for name, drop in drops.items():
            row = {
                "heads_of": task or "none", "measured_on": name,
                "intact": drop.before, "ablated": drop.after,
                "published": published.top5(study.published, task, name),
            }  # fmt: skip
            rows.append(row)
    return rows


def longer_sweep(study: Study) -> list[Row]:
    """Figure 2: k from 0 to 10."""
    return sweep(study, largest=10)


def shared_bars(study: Study) -> list[Row]:
    """Figure 3: the heads that knowledge tasks share, on each of them and on the other tasks."""
    return [
        row
        for head in ("", *shared_heads(study))
        for row in _knowledge_scores(study, head or "none", (head,) if head else (), head)
    ]


def own_bars(study: Study) -> list[Row]:
    """Figure 4: each knowledge task's own heads, on each of them and on the other tasks."""
    tasks = [task for task in require_knowledge(study) if task in study.localized]
    rows = _knowledge_scores(study, "none", (), "")
    for task in tasks:
        rows += _knowledge_scores(study, task, study.list_of(task).heads, task)
    return rows


def _knowledge_scores(
    study: Study, label: str, heads: tuple[str, ...], published_as: str
) -> list[Row]:
    """Returns scores of the knowledge tasks and of the general tasks without some heads."""
    knowledge = study.knowledge
    general = study.general(knowledge[0])
    drops = study.drops(heads, [*knowledge, *general])
    measured = {task: (drops[task].before, drops[task].after) for task in knowledge}
    if general:
        before = sum(drops[task].before for task in general) / len(general)
        after = sum(drops[task].after for task in general) / len(general)
        measured["general"] = (before, after)
    rows = []
    for name, (intact, ablated) in measured.items():
        as_published = "general_without_mmlu" if name == "general" else name
        row = {
            "heads": label, "measured_on": name, "intact": intact, "ablated": ablated,
            "published": published.knowledge(study.published, published_as, as_published),
        }  # fmt: skip
        rows.append(row)
    return rows
