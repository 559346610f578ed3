"""`compare`: the differences between models, or runs, on the same masks and items."""

from collections.abc import Sequence
from dataclasses import replace

from broca.comparisons import subjects
from broca.comparisons.collection import Collection
from broca.comparisons.subjects import ComparedSubject
from broca.options import AblationOptions, CompareOptions, TaskOptions, verb
from broca.results.base import AblationInfo
from broca.results.comparison import Comparison
from broca.runs.folder import options_of_run, with_recorded
from broca.runs.progress import Stages
from broca.runs.session import ablation_of, open_run, open_workspace
from broca.runs.task_sets import equal_tasks, load_tasks


@verb(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compares the components of models of one architecture, and the selections of runs on them.

    Every model answers the same rows: random masks on the same items. The effects of components,
    and their differences from the first model, come from one regression, with the errors of
    leaving out each item. Components count as changed at a false discovery rate. Every selection is
    ablated in every model on items that the search of the first run did not see.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    given = subjects.subjects_of(options.models, options.revisions)
    options = as_measured(options, given)
    run_options, rows, items = options.run_options, options.rows, options.items
    names, seed = subjects.tasks_of(given, options.tasks), subjects.seed_of(given, options.seed)
    compared = subjects.merged(given)
    selections = subjects.selections_of(compared, options.heads)
    ablation = ablation_of(run_options.ablation_options, seed)
    collection = Collection(compared, selections, rows, options.response, seed)
    if {subject.seed for subject in given} - {None, seed}:
        collection.notes.append(f"runs of other seeds than {seed} searched on some of these items")
    as_here = AblationInfo(ablation.kind, ablation.scale)
    if any(subject.selections and subject.ablation != as_here for subject in given):
        collection.notes.append("some sets were found under another ablation than that of all rows")
    asked = [subject.task_options for subject in given if subject.seed is not None]
    if any(other != asked[0] for other in asked):
        collection.notes.append("all models are asked as the first run was, some runs otherwise")
    subjects.require_comparable(compared, run_options)
    stages = Stages(run_options.on_progress)
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        for subject in compared:
            model_options = replace(run_options.model_options, revision=subject.revision)
            within = replace(run_options.within(space), model_options=model_options)
            with open_run(subject.model, within, stages, others=[names]) as opened:
                opened.model.require_measured(
                    subject.fingerprint, of=f"the result '{subject.label}'",
                    advice="check `dtype` and the model",
                )  # fmt: skip
                collection.require_components(opened.model.components.names, subject.label)
                for selection in selections:
                    opened.model.components.columns(selection.components)
                opened.stages.enter(f"building the tasks of {subject.label}")
                benchmarks = load_tasks(
                    opened.model, opened.catalog.names_of(names), opened.catalog,
                    options=opened.options.task_options,
                )  # fmt: skip
                run = opened.on(
                    equal_tasks(
                        benchmarks, "locate", "report", items=items, seed=seed, limit=options.limit
                    ),
                    ablation=ablation,
                    settings={
                        "verb": "compare", "tasks": list(benchmarks), "rows": rows, "items": items,
                        "limit": options.limit, "response": options.response, "seed": seed,
                        "ablation": [ablation.kind, ablation.scale],
                        "components": opened.model.kinds,
                        "selections": [list(chosen.components) for chosen in selections],
                        "task_options": opened.options.task_options.to_dict(),
                    },
                )  # fmt: skip
                collection.measure(run, subject.label)
    return collection.compared(ablation, level=options.level)


def as_measured(options: CompareOptions, given: Sequence[ComparedSubject]) -> CompareOptions:
    """Completes the options by those of the first run; each task has its own metric."""
    run = next((subject for subject in given if subject.tasks), None)
    if run is None:
        return options
    run_options = options.run_options
    known = with_recorded(run_options.task_options, TaskOptions.of(run.task_options))
    ablation = run_options.ablation_options
    if run.ablation.kind == ablation.ablation:
        ablation = with_recorded(ablation, AblationOptions(scale=run.ablation.scale))
    run_options = replace(run_options, task_options=known, ablation_options=ablation)
    if run.folder is not None:
        run_options = options_of_run(run.folder, run_options, with_journal=False)
    known = replace(run_options.task_options, metric=None)
    return replace(options, run_options=replace(run_options, task_options=known))
