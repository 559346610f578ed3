"""`reproduce`: tables and figures of the paper on some models, in one call.

Their rows are plain values for JSON and CSV. Published figures have their own columns, which are
None for other models and tasks and then left out of the row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from broca import searches
from broca.errors import BadInput, NothingToLocalize, UnknownName, require_known
from broca.models import GatedModel, require_readable
from broca.options import ReproduceOptions, flat, verb
from broca.results.runs import Reproduction
from broca.runs.progress import Stages
from broca.runs.session import open_run, open_workspace
from broca.searches import DEFAULT_METHOD
from broca.studies import ALL, NAMES
from broca.studies.study import KNOWLEDGE, Row, Study
from broca.tasks import listed, require_context

PAPER_METHODS = ("greedy", "one-shot", "cs-bernoulli", "cs-stratified")
"""The methods that the paper compares, which precede broca's own."""

WITHOUT_LISTS = ("table4", "table5", "table7")
"""Those without lists of the study's method: of named methods, or of universal heads alone."""


def top_heads(study: Study) -> Iterator[Row]:
    """Table 2: drops of the task and of the general tasks without the selected heads."""
    published = study.published
    for task in study.localized:
        heads = study.list_of(task).heads
        figures: Callable[[str, str], float | None] = published.top5
        general = "general"
        if task in KNOWLEDGE:
            figures, general = published.knowledge, "general_without_mmlu"
        yield {
            "task": task, "heads": " ".join(heads), **study.scores(task, heads),
            "published_intact": figures("", task), "published_ablated": figures(task, task),
            "published_general_intact": figures("", general),
            "published_general_ablated": figures(task, general),
        }  # fmt: skip


def same_skill(study: Study) -> Iterator[Row]:
    """Table 3: heads of a task, measured on it and on the other tasks of its skill."""
    same = {task: study.same_skill(task) for task in study.localized}
    if not any(same.values()):
        raise BadInput(
            "no two tasks have the same skill, which table3 compares: name some, such as "
            "addition,addition_words or gsm8k,arithmetic"
        )
    for task in filter(same.get, same):
        for measured_on in (task, *same[task]):
            yield {
                "skill": study.skill(task), "found_on": task, "measured_on": measured_on,
                **study.scores(measured_on, study.list_of(task).heads),
                "published_ablated": study.published.top5(task, measured_on),
            }  # fmt: skip


def methods(study: Study) -> Iterator[Row]:
    """Table 4: the paper's methods and broca's, with the rows of each search."""
    for task in study.localized:
        study.list_of(task, DEFAULT_METHOD)  # it needs most rows: too few are refused at once
        for method in (*PAPER_METHODS, DEFAULT_METHOD):
            listed = study.list_of(task, method)
            yield {
                "task": task, "method": method, "heads": " ".join(listed.heads),
                "rows": listed.rows, **study.scores(task, listed.heads),
                "published_heads": " ".join(study.published.heads(task, method)),
                "published_evaluations": study.published.evaluations(method),
            }  # fmt: skip


def sweep(study: Study, *, largest: int) -> Iterator[Row]:
    """Table 6 and figure 2: the first k heads, from k = 0 on."""
    for task in study.localized:
        order = study.list_of(task).order[:largest]
        for k in range(len(order) + 1):
            row: Row = {"task": task, "k": k, "head": order[k - 1] if k else ""}
            row |= study.scores(task, order[:k])
            same = study.drops(order[:k], study.same_skill(task)).values()
            if same:
                row["same_skill_drop"] = fmean(drop.drop for drop in same)
            row["published"] = study.published.sweep(task, k)
            if row["published"] is not None:
                row["published_general"] = study.published.sweep("general", k)
            yield row


def universal_by_skill(study: Study) -> Iterator[Row]:
    """Table 5: drop without each universal head, mean over the tasks of a skill."""
    skills = {task: study.skill(task) for task in study.tasks}
    for head in _universal(study):
        drops = study.drops([head], study.tasks)
        means = {
            skill: fmean(drops[task].drop for task in drops if skills[task] == skill)
            for skill in dict.fromkeys(skills.values())
        }
        yield {"head": head, **means}


def universal_by_task(study: Study) -> Iterator[Row]:
    """Table 7: every task's score without each universal head, the intact model first."""
    yield from _by_task(study, _universal(study), {"mean": study.tasks})


def _universal(study: Study) -> tuple[str, ...]:
    if not study.universal:
        study.notes.append(f"{study.model.name}: no head is universal on these tasks")
    return study.universal


def _by_task(
    study: Study, heads: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> Iterator[Row]:
    """Yields scores without each head, a column for each task, and for the mean of each group."""
    for head in ("", *heads):
        row: Row = {"head": head or "none"}
        for total, tasks in groups.items():
            drops = study.drops([head] if head else [], tasks)
            scores = {task: drop.after for task, drop in drops.items()}
            row |= {**scores, total: fmean(scores.values())} if scores else {}
        yield row


def shared_knowledge(study: Study) -> Iterator[Row]:
    """Table 8: every task's score without each head that knowledge tasks share."""
    others = [task for task in study.tasks if task not in study.knowledge]
    groups = {"knowledge_mean": study.knowledge, "other_mean": others}
    yield from _by_task(study, _shared_heads(study), groups)


def _shared_heads(study: Study) -> tuple[str, ...]:
    """Returns the heads in the lists of half of the knowledge tasks, at least two; published too.

    Raises:
        BadInput: There are no two knowledge tasks.
    """
    knowledge = _knowledge(study)
    counted = Counter(head for task in knowledge for head in study.list_of(task).heads)
    fewest = max(2, (len(knowledge) + 1) // 2)
    shared = [head for head, times in counted.most_common() if times >= fewest]
    if not shared:
        study.notes.append(
            f"{study.model.name}: no head is in the lists of {fewest} of {len(knowledge)} "
            "knowledge tasks"
        )
    return tuple(dict.fromkeys((*shared, *study.published.knowledge_heads())))


def _knowledge(study: Study) -> list[str]:
    """Returns the knowledge tasks that are localized.

    Raises:
        BadInput: There are fewer than two.
    """
    tasks = [task for task in study.knowledge if task in study.localized]
    if len(tasks) < 2:
        raise BadInput(
            "fewer than two tasks ask for knowledge by multiple choice: name some that "
            f"{study.model.name} can do, such as wmdp_bio,wmdp_chem or mc_biology,mc_chemistry"
        )
    return tasks


def head_lists(study: Study) -> Iterator[Row]:
    """Table 9: the heads of every task, beside the published ones."""
    method = study.options.method
    for task in study.localized:
        listed, published = study.list_of(task), study.published.heads(task, method)
        row: Row = {
            "task": task, "method": method, "heads": " ".join(listed.heads),
            "universal": " ".join(listed.universal), "published": " ".join(published),
        }  # fmt: skip
        if published:
            row["shared"] = len(set(listed.heads) & set(published))
        yield row


def radar(study: Study) -> Iterator[Row]:
    """Figure 1: every task, intact and without the heads of the first task of each skill."""
    firsts = {study.skill(task): task for task in reversed(study.localized)}
    listed = [task for task in study.localized if task in firsts.values()]
    for task in ("", *listed):
        drops = study.drops(study.list_of(task).heads if task else (), study.tasks)
        for name, drop in drops.items():
            yield {
                "heads_of": task or "none", "measured_on": name,
                "intact": drop.before, "ablated": drop.after,
                "published": study.published.top5(task, name),
            }  # fmt: skip


def shared_bars(study: Study) -> Iterator[Row]:
    """Figure 3: the heads that knowledge tasks share, on each of them and on the other tasks."""
    yield from _bars(study, {head: (head,) for head in _shared_heads(study)})


def own_bars(study: Study) -> Iterator[Row]:
    """Figure 4: each knowledge task's own heads, on each of them and on the other tasks."""
    yield from _bars(study, {task: study.list_of(task).heads for task in _knowledge(study)})


def _bars(study: Study, lists: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yields scores of the knowledge tasks and of the general tasks, intact and without each list.

    Args:
        study: The study.
        lists: Heads by their name in the published figures.
    """
    general = study.general(_knowledge(study)[0])
    measured: dict[str, Sequence[str]] = {task: [task] for task in study.knowledge}
    if general:
        measured["general"] = general
    for name, heads in {"": (), **lists}.items():
        drops = study.drops(heads, [*study.knowledge, *general])
        for group, tasks in measured.items():
            published_as = "general_without_mmlu" if group == "general" else group
            yield {
                "heads": name or "none", "measured_on": group,
                "intact": fmean(drops[task].before for task in tasks),
                "ablated": fmean(drops[task].after for task in tasks),
                "published": study.published.knowledge(name, published_as),
            }  # fmt: skip


def scale(study: Study) -> Iterator[Row]:
    """Drops without the selected heads, with the size of the model."""
    model = study.model
    size = {
        "parameters": sum(weights.numel() for weights in model.model.parameters()),
        "layers": model.structure.layers, "heads": len(model.components),
    }  # fmt: skip
    for task in study.localized:
        heads = study.list_of(task).heads
        row: Row = {**size, "task": task, "k": len(heads), **study.scores(task, heads)}
        yield row | {"relative_drop": row["drop"] / row["intact"] if row["intact"] else None}


EXPERIMENTS: Mapping[str, Callable[[Study], Iterator[Row]]] = {
    "table2": top_heads,
    "table3": same_skill,
    "table4": methods,
    "table5": universal_by_skill,
    "table6": partial(sweep, largest=5),
    "table7": universal_by_task,
    "table8": shared_knowledge,
    "table9": head_lists,
    "figure1": radar,
    "figure2": partial(sweep, largest=10),
    "figure3": shared_bars,
    "figure4": own_bars,
    "scale": scale,
}
"""The functions that make the rows of each name, for a model."""


@verb(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> tuple[Reproduction, ...]:
    """Repeats a table or figure of the paper, several or all of them.

    Models are loaded in turn, and their rows are concatenated. Searches and measurements that
    tables share are made once.

    Returns:
        A reproduction for each name. If several are requested, those that these models and tasks do
        not allow have no rows, and a note gives the reason.

    Raises:
        BrocaError: A name, task or model is unknown, or the tasks do not allow the only
            reproduction.
    """
    requested = _requested_names(options.name)
    searches.require_method(options.method)
    if requested == ("scale",) and len(options.model) < 2:
        raise BadInput("scale compares models: name two or more, such as reference-small reference")
    for name in ("method", "keep_universal"):
        given = getattr(options, name) != getattr(ReproduceOptions, name)
        if given and {*requested} <= {*WITHOUT_LISTS}:
            raise BadInput(
                f"`{name}` is about lists of the method, and {requested[0]} has none: leave it out"
            )
    run_options = options.run_options
    for model in options.model:
        if not isinstance(model, GatedModel):
            checkpoint, _ = require_readable(model, run_options.model_options)
            require_context(checkpoint.config, run_options.task_options)
    stages = Stages(run_options.on_progress)
    rows: dict[str, list[Row]] = {name: [] for name in requested}
    notes: dict[str, list[str]] = {name: [] for name in requested}
    studied: list[str] = []
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        within = run_options.within(space)
        for model in options.model:
            with open_run(model, within, stages, others=[options.tasks]) as opened:
                try:
                    study = Study(opened, options)
                except NothingToLocalize as error:
                    if model == options.model[-1] and not studied:
                        raise
                    notes = {name: [*said, str(error)] for name, said in notes.items()}
                    continue
                studied.append(study.model.name)
                for number, name in enumerate(requested, start=1):
                    stages.enter(f"{name} of {studied[-1]} ({number} of {len(requested)})")
                    general = len(study.notes)
                    try:
                        found = EXPERIMENTS[name](study)
                        rows[name] += [_published(row, studied[-1]) for row in found]
                    except BadInput as error:
                        if len(requested) == 1 and not rows[name] and model == options.model[-1]:
                            raise
                        study.notes.append(f"{studied[-1]}: {error}")
                    notes[name] += dict.fromkeys(study.notes)
                    del study.notes[general:]
                study.run.finish()
    if len(studied) < 2 and "scale" in requested:
        notes["scale"].append("one model shows no dependence on size: name several")
    tasks, source, loading = options.tasks, run_options.source_options, run_options.model_options
    settings = {
        **flat(options.decisive(without=("name", "model", "tasks", "run_options"))),
        "tasks": tasks if isinstance(tasks, str) else [getattr(t, "name", t) for t in tasks],
        "include_path": source.include_path,
        "allow_code": source.allow_code,
        "revision": loading.revision,
        "dtype": loading.dtype,
    }
    models = tuple(studied)
    return tuple(
        Reproduction(name, models, tuple(rows[name]), settings, tuple(notes[name]), NAMES[name])
        for name in requested
    )


def _published(row: Row, model: str) -> Row:
    """Returns a row with its model, without the figures that are not published."""
    return {"model": model, **{name: value for name, value in row.items() if value is not None}}


def _requested_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the distinct requested names.

    Raises:
        UnknownName: A name does not exist.
    """
    for name in (requested := listed(names) or [""]):
        require_known("`name`", name, (*NAMES, ALL), error=UnknownName)
    return tuple(NAMES if ALL in requested else dict.fromkeys(requested))
