"""`compare`: the differences between models, or runs, on the same masks and items."""

from dataclasses import replace

from broca.comparisons.collection import Collection
from broca.comparisons.subjects import merged, seed_of, selections_of, subjects_of, tasks_of
from broca.options import CompareOptions, verb
from broca.results.comparison import Comparison
from broca.runs.progress import Stages
from broca.runs.session import ablation_of, open_run, open_workspace
from broca.runs.task_sets import equal_tasks, load_tasks


@verb(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compares the components of models of one architecture, and the selections of runs on them.

    Every model answers the same rows: random masks on the same items. The effects of components,
    and their differences from the first model, come from one regression with errors clustered by
    item. Components count as changed at a false discovery rate. Every selection is ablated in every
    model on items that the search of the first run did not see.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    run_options, rows, items = options.run_options, options.rows, options.items
    subjects = subjects_of(options.models, options.revisions)
    names, seed = tasks_of(subjects, options.tasks), seed_of(subjects, options.seed)
    seeds = {subject.seed for subject in subjects}
    subjects = merged(subjects)
    selections = selections_of(subjects, options.heads)
    ablation = ablation_of(run_options.ablation_options, seed)
    collection = Collection(subjects, selections, rows, options.response, seed)
    if seeds - {None, seed}:
        collection.notes.append(
            "runs of other seeds than the first searched on some of these items"
        )
    stages = Stages(run_options.on_progress)
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        for subject in subjects:
            model_options = replace(run_options.model_options, revision=subject.revision)
            within = replace(run_options.within(space), model_options=model_options)
            with open_run(subject.model, within, stages, others=[names]) as opened:
                subject.require_weights(opened.model)
                names_of = opened.model.components.names
                collection.require_components(names_of, subject.label, opened.model.architecture)
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
