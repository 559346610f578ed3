"""`localize`: finds the components that a task needs, and proves them on held-out items."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from broca.options import LocalizeOptions, verb
from broca.results.base import AblationInfo
from broca.results.localization import Cost, Localization, SearchInfo, ranked
from broca.runs import search
from broca.runs.run import model_info
from broca.runs.session import ablation_of, open_run
from broca.runs.task_sets import TaskSet, chance_notes
from broca.searches import Ranking
from broca.verification import QUICK, plain_verification


@verb(LocalizeOptions)
def localize(options: LocalizeOptions) -> Localization:
    """Finds the components that a task needs and proves them on held-out items.

    Returns:
        The result; `save` writes `result.json` and `report.html`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    seed, budget = options.seed, options.search_options
    method = search.method_of(budget)
    ablation_of(options.run_options.ablation_options, seed)
    with open_run(
        options.model, options.run_options, task=options.task,
        others=[options.others, options.same_skill],
    ) as opened:  # fmt: skip
        components = opened.model.components
        search.require_selection(budget.k, opened.model)
        started = time.perf_counter()
        run = search.searching_run(opened, options, method, seed=seed)
        tasks, stages = run.tasks, run.stages
        rows = search.search_rows(run.model, tasks, method, budget)
        proof = search.proof_rows(tasks.trial(), QUICK, members=budget.k) if options.verify else 0
        stages.expect(options.seeds * rows + proof + 2 * len(tasks.bank))
        baseline, _ = run.intact()
        searched = search.search(run, method, budget, seed=seed)
        stages.expect(run.search_rows - rows)  # it may end early
        ranking = searched.ranking
        selected = tuple(components.names[column] for column in ranking.selected)
        if selected:
            stages.enter("verifying on the report items")
        after, verification = run.scores(ranking.selected) if selected else baseline, None
        if options.verify and selected:
            examiner = run.examiner(replace(QUICK, seed=seed))
            verification = examiner.examine(selected, report=stages.enter)
        again = range(seed + 1, seed + options.seeds)
        repeats = [search.repeat(opened, options, method, seed=number) for number in again]
        if verification is None:
            verification = plain_verification(
                model_info(run.model), selected, run.ablation, tasks.trial(), baseline, after
            )
        scoring_rows = run.scoring_rows
        measured, tokens = run.finish()
        return Localization(
            model=model_info(run.model),
            task=tasks.task,
            others=tasks.others,
            same_skill=tasks.same_skill,
            search=SearchInfo(method, ranking.options, seed, run.search_response),
            cost=Cost(
                rows=run.search_rows,
                verification_rows=scoring_rows,
                tokens=tokens,
                wall_s=round(time.perf_counter() - started, 3),
                measured=measured,
            ),
            baseline=baseline,
            ranking=ranked(components, ranking.effects, ranking.order, **ranking.details),
            repeats=tuple(repeats),
            off_target_effects={}
            if ranking.others is None
            else {
                components.names[column]: float(ranking.others[column]) for column in ranking.order
            },
            shared=tuple(components.names[column] for column in ranking.universal),
            selected=selected,
            abstained=not selected,
            reason=ranking.reason,
            verification=replace(verification, rows=scoring_rows, documents=tasks.documents),
            response=searched.referenced.response,
            components=run.model.kinds,
            ablation=AblationInfo(run.ablation.kind, run.ablation.scale),
            task_options=run.options.task_options.to_dict(),
            notes=(
                *_notes(tasks, baseline), *searched.referenced.notes,
                *_groups(components.names, ranking),
            ),
            answer=ranking.answer,
            additivity=ranking.additivity,
        )  # fmt: skip


def _notes(tasks: TaskSet, baseline: Mapping[str, float]) -> tuple[str, ...]:
    """Notes on the tasks for the reader."""
    notes = list(tasks.notes)
    capability = tasks.benchmarks[tasks.task].capability
    for name, benchmark in tasks.benchmarks.items():
        notes += tasks.notes_of(name)
        if name == tasks.task:
            continue
        if benchmark.capability == capability:
            notes.append(
                f"{name} measures the same capability ({capability}) as {tasks.task}: it is "
                "reported separately, and its drop is not an off-target drop"
            )
    return (*notes, *chance_notes(tasks, baseline))


def _groups(names: Sequence[str], ranking: Ranking) -> tuple[str, ...]:
    """The method's notes, and its groups of components."""
    groups = (
        f"{name}: {', '.join(names[column] for column in columns) or 'none'}"
        for name, columns in ranking.groups.items()
    )
    return (*ranking.notes, *groups)
