"""`compare`: the differences between models, or runs, on the same masks and items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from broca.comparisons import Collection, Comparable, seed_of, selections_of, subjects_of, tasks_of
from broca.options import CompareRunOptions, takes_options
from broca.results.comparison import Comparison
from broca.runs.progress import Stages
from broca.runs.setup import ablation_of, open_session, open_workspace
from broca.runs.task_sets import load_tasks, split_tasks
from broca.tasks import Task


@takes_options
def compare(
    *models: Comparable,
    tasks: str | Sequence[str | Task] = (),
    heads: str | Sequence[str] = (),
    revisions: Sequence[str] = (),
    rows: int | None = None,
    items: int = 100,
    limit: int | None = None,
    response: str | None = None,
    level: float = 0.05,
    seed: int | None = None,
    run_options: CompareRunOptions,
) -> Comparison:
    """Compares the components of models of one architecture, and the selections of runs on them.

    Every model answers the same rows: random masks on the same items. The effects of components,
    and their differences from the first model, come from one regression with errors clustered by
    item. Components count as changed at a false discovery rate. Every selection is ablated in every
    model on items that no search saw.

    Args:
        models: Models (names, folders, hub ids or what `broca.load` returned), localizations,
            atlases or their folders; the first is the reference. A single model needs `revisions`.
        tasks: The tasks; by default those that the runs localized, or that all atlases have.
        heads: Components to ablate together in every model, in addition to the runs' selections.
        revisions: Hub revisions of a single model, in their order.
        rows: Rows with random masks for each model and task; by default six for each component,
            at least 1,000.
        items: Maximum number of items of a task for these rows.
        limit: Maximum number of report items of a task, on which scores are measured; all by
            default.
        response: Response of these rows; by default `probability`, or `accuracy` if the right
            answers are each model's own.
        level: Level of tests and intervals, and the false discovery rate.
        seed: Seed of all random draws; by default the first run's seed, which splits the items as
            that run did.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    subjects = subjects_of(models, revisions)
    names, selections = tasks_of(subjects, tasks), selections_of(subjects, heads)
    seed = seed_of(subjects, seed)
    ablation = ablation_of(run_options.ablation_options, seed)
    collection, stages = (
        Collection([subject.label for subject in subjects]),
        Stages(run_options.on_progress),
    )
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        for subject in subjects:
            model_options = replace(run_options.model_options, revision=subject.revision)
            options = replace(run_options.within(space), model_options=model_options)
            with open_session(subject.model, options, stages, others=[names]) as opened:
                subject.require_weights(opened.model)
                collection.require_components(opened.model, subject.label)
                for selection in selections:
                    opened.model.components.columns(selection.components)
                opened.stages.enter(f"building the tasks of {subject.label}")
                benchmarks = load_tasks(
                    opened.model, opened.catalog.names_of(names), opened.catalog,
                    options=opened.options.task_options,
                )  # fmt: skip
                run = opened.run(
                    split_tasks(benchmarks, items=items, seed=seed, limit=limit),
                    ablation=ablation,
                    settings={
                        "verb": "compare", "tasks": list(benchmarks), "rows": rows, "items": items,
                        "limit": limit, "response": response, "seed": seed,
                        "ablation": [ablation.kind, ablation.scale],
                        "components": opened.model.kinds,
                        "selections": [list(chosen.components) for chosen in selections],
                        "task_options": opened.options.task_options.to_dict(),
                    },
                )  # fmt: skip
                collection.measure(run, subject.label, selections, rows, seed, response)
    return collection.compared(subjects, ablation, level=level, seed=seed)
