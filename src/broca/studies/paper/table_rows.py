"""The tables, as rows of plain values for JSON and CSV.

Published figures have their own columns. They are None for other models and tasks; `reproduce`
leaves these columns out of the row, and adds the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from broca.atlases import keep_to_groups
from broca.errors import BadInput
from broca.searches import DEFAULT_METHOD
from broca.studies.paper import published_figures as published
from broca.studies.paper.reproduction import Row
from broca.studies.paper.study import Study, mean

PAPER_METHODS = ("greedy", "one-shot", "cs-bernoulli", "cs-stratified")
"""The methods that the paper compares, which precede broca's own."""


def top_heads(study: Study) -> list[Row]:
    """Table 2: drops of the task and of the general tasks without the selected heads."""
    rows = []
    for task in study.localized:
        heads = study.list_of(task).heads
        row = {
            "task": task, "heads": " ".join(heads), **study.scores(task, heads),
            "published_intact": published.top5(study.published, "", task),
            "published_ablated": published.top5(study.published, task, task),
            "published_general_intact": published.top5(study.published, "", "general"),
            "published_general_ablated": published.top5(study.published, task, "general"),
        }  # fmt: skip
        rows.append(row)
    return rows


def same_skill(study: Study) -> list[Row]:
    """Table 3: heads of a task, measured on it and on the other tasks of its skill."""
    rows = []
    for task in study.localized:
        same = study.same_skill(task)
        for measured_on in (task, *same) if same else ():
            row = {
                "skill": study.skill(task), "found_on": task, "measured_on": measured_on,
                **study.scores(measured_on, study.list_of(task).heads),
                "published_ablated": published.top5(study.published, task, measured_on),
            }  # fmt: skip
            rows.append(row)
    if not rows:
        raise BadInput(
            "no two tasks have the same skill, which table3 compares: name some, such as "
            "addition,addition_words or gsm8k,arithmetic"
        )
    return rows


def methods(study: Study) -> list[Row]:
    """Table 4: the paper's methods and broca's, with the rows of each search."""
    rows = []
    for task in study.localized:
        for method in (*PAPER_METHODS, DEFAULT_METHOD):
            listed = study.list_of(task, method)
            rows.append(
                {
                    "task": task, "method": method, "heads": " ".join(listed.heads),
                    "rows": listed.rows, **study.scores(task, listed.heads),
                    "published_heads": " ".join(published.heads(study.published, task, method)),
                    "published_evaluations": published.evaluations(study.published, method),
                }
            )  # fmt: skip
    return rows


def sweep(study: Study, *, largest: int = 5) -> list[Row]:
    """Table 6 and figure 2: the first k heads, from k = 0 on."""
    rows = []
    for task in study.localized:
        order = study.list_of(task).order[:largest]
        for k in range(len(order) + 1):
            row: Row = {"task": task, "k": k, "head": order[k - 1] if k else ""}
            row.update(study.scores(task, order[:k]))
            same = study.drops(order[:k], study.same_skill(task)).values()
            if same:
                row["same_skill_drop"] = mean(drop.drop.value for drop in same)
            row["published"] = published.sweep(study.published, task, k)
            if row["published"] is not None:
                row["published_general"] = published.sweep(study.published, "general", k)
            rows.append(row)
    return rows


def universal_by_task(study: Study) -> list[Row]:
    """Table 7: every task's score without each universal head, the intact model first."""
    return [
        {"head": head or "none", **_scores(study, [head] if head else [], study.tasks)}
        for head in ("", *_universal(study))
    ]


def universal_by_skill(study: Study) -> list[Row]:
    """Table 5: drop without each universal head, mean over the tasks of a skill."""
    skills = {task: study.skill(task) for task in study.tasks}
    rows = []
    for head in _universal(study):
        drops = study.drops([head], study.tasks)
        row: Row = {"head": head}
        for skill in dict.fromkeys(skills.values()):
            row[skill] = mean(drops[task].drop.value for task in drops if skills[task] == skill)
        rows.append(row)
    return rows


def shared_knowledge(study: Study) -> list[Row]:
    """Table 8: every task's score without each head that knowledge tasks share."""
    knowledge = study.knowledge
    others = [task for task in study.tasks if task not in knowledge]
    rows = []
    for head in ("", *shared_heads(study)):
        heads = [head] if head else []
        scores = _scores(study, heads, knowledge, total="knowledge_mean")
        other_scores = _scores(study, heads, others, total="other_mean") if others else {}
        rows.append({"head": head or "none", **scores, **other_scores})
    return rows


def shared_heads(study: Study) -> tuple[str, ...]:
    """Returns the heads in the lists of half of the knowledge tasks, at least two; published too.

    Raises:
        BadInput: There are no two knowledge tasks.
    """
    knowledge = [task for task in require_knowledge(study) if task in study.localized]
    counted = Counter(head for task in knowledge for head in study.list_of(task).heads)
    fewest = max(2, (len(knowledge) + 1) // 2)
    shared = [head for head, times in counted.most_common() if times >= fewest]
    if not shared:
        study.notes.append(
            f"{study.model.name}: no head is in the lists of {fewest} of {len(knowledge)} "
            "knowledge tasks"
        )
    return tuple(dict.fromkeys((*shared, *published.knowledge_heads(study.published))))


def require_knowledge(study: Study) -> tuple[str, ...]:
    """Returns the knowledge tasks, of which there must be two.

    Raises:
        BadInput: There are fewer than two.
    """
    if sum(task in study.localized for task in study.knowledge) < 2:
        raise BadInput(
            "fewer than two tasks ask for knowledge by multiple choice: name some that "
            f"{study.model.name} can do, such as wmdp_bio,wmdp_chem or mc_biology,mc_chemistry"
        )
    return study.knowledge


def head_lists(study: Study) -> list[Row]:
    """Table 9: the heads of every task, beside the published ones."""
    rows = []
    for task in study.localized:
        listed = study.list_of(task)
        published_heads = published.heads(study.published, task, study.settings.method)
        row: Row = {
            "task": task, "method": study.settings.method, "heads": " ".join(listed.heads),
            "universal": " ".join(listed.universal), "published": " ".join(published_heads),
        }  # fmt: skip
        if published_heads:
            row["shared"] = len(set(listed.heads) & set(published_heads))
        rows.append(row)
    return rows


def groups(study: Study) -> list[Row]:
    """Pairs of heads of a skill in the same key/value group, and their number under permutations.

    Raises:
        BadInput: The model has no groups, or no list has two heads.
    """
    measured: dict[str, dict[str, None]] = {}
    for task in study.localized:
        heads = measured.setdefault(study.skill(task), {})
        heads.update(dict.fromkeys(study.list_of(task).heads))
    rows = _pairs(study, "measured", {skill: tuple(heads) for skill, heads in measured.items()})
    lists = published.lists(study.published)
    return rows + (_pairs(study, "published", lists) if lists else [])


def _pairs(study: Study, source: str, sets: dict[str, tuple[str, ...]]) -> list[Row]:
    """Returns a row for each set of heads, and a row for all of them."""
    sizes = {
        projection.layer: projection.heads // projection.kv_heads
        for projection in study.model.structure.projections
    }
    names = study.model.components.names
    rows = []
    for label, members in (*((name, {name: heads}) for name, heads in sets.items()), ("all", sets)):
        test, why_not = keep_to_groups(members, sizes, names, seed=study.settings.seed)
        if test is None:
            if label == "all":
                raise BadInput(f"gqa does not apply to {study.model.name}: {why_not}")
            continue
        rows.append(
            {
                "source": source, "skill": label,
                "heads": " ".join(head for heads in members.values() for head in heads),
                "group_size": test.group_size, "pairs_in_one_group": test.pairs,
                "expected": test.expected, "p": test.p, "permutations": test.permutations,
            }
        )  # fmt: skip
    return rows


def scale(study: Study) -> list[Row]:
    """Drops without the selected heads, with the size of the model."""
    model = study.model
    size = {
        "parameters": sum(weights.numel() for weights in model.model.parameters()),
        "layers": model.structure.layers, "heads": len(model.components),
    }  # fmt: skip
    rows = []
    for task in study.localized:
        heads = study.list_of(task).heads
        row: Row = {**size, "task": task, "k": len(heads), **study.scores(task, heads)}
        row["relative_drop"] = row["drop"] / row["intact"]
        rows.append(row)
    return rows


def _universal(study: Study) -> tuple[str, ...]:
    if not study.universal:
        study.notes.append(f"{study.model.name}: no head is universal on these tasks")
    return study.universal


def _scores(
    study: Study, heads: Sequence[str], tasks: Sequence[str], *, total: str = "mean"
) -> Row:
    """Returns scores without some heads, a column for each task and their mean."""
    drops = study.drops(heads, tasks)
    scores = {task: drops[task].after for task in tasks}
    return {**scores, total: mean(scores.values())}
