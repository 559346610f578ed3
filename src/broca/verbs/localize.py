"""`localize`: finds the components that a task needs, and proves them on held-out items."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options
from broca.results.localization import Localization
from broca.runs.assembling import localization
from broca.runs.problems import method_of, require_search, require_selection
from broca.runs.searching import Searches
from broca.runs.setup import ablation_of, open_session
from broca.runs.verb_steps import localization_steps
from broca.tasks import Task
from broca.verification import QUICK
from broca.verification.effects import ablate_alone
from broca.verification.interactions import pairwise, require_count


@takes_options
def localize(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    same_skill: str | Sequence[str | Task] = (),
    report_items: int | None = None,
    seed: int = 0,
    verify: bool = True,
    interactions: int = 0,
    seeds: int = 1,
    search_options: SearchOptions,
    run_options: RunOptions,
) -> Localization:
    """Finds the components that a task needs and proves them on held-out items.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task to localize: shipped, in `include_path`, any of lm-eval, a JSON-lines file,
            or a `broca.Task`.
        others: Tasks that the selection should not affect. `auto`: all other shipped tasks for a
            shipped model, else all tasks of `include_path`, else none; `general` stands for the
            four tasks of the paper's group. Tasks whose metadata state the capability of `task` are
            reported separately, as `same_skill`.
        same_skill: More tasks of the same capability, reported separately.
        report_items: Maximum number of `report` items of the task, and approximately of all others
            together; all by default.
        seed: Seed of the item split, the masks and all other random draws.
        verify: Whether to end with statistics, random sets and a verdict (`broca.verify` measures
            more of them).
        interactions: How many leading heads, the selected ones first, to measure in pairs on the
            task's `confirm` items; 0 for none.
        seeds: Number of searches, each on different items and masks. The selection of the first is
            verified; the others measure how stable it is.
        journal: File that keeps every measured row; known rows are not measured again. With None
            rows are kept in memory, and the run cannot be resumed.

    Returns:
        The result; `save` writes `result.json` and `report.html`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    for name, value in (("report_items", report_items), ("seeds", seeds)):
        if value is not None and value < 1:
            raise BadInput(f"`{name}` must be at least 1, not {value}")
    method = method_of(search_options)
    ablation = ablation_of(run_options.ablation_options, seed)
    with open_session(model, run_options, task=task, others=[others, same_skill]) as opened:
        gated, stages = opened.model, opened.stages
        require_count(interactions, len(gated.components))
        require_selection(search_options.k, gated)
        started = time.perf_counter()
        searches = Searches(
            opened=opened, task=task, others=others, same_skill=same_skill, ablation=ablation,
            report_items=report_items, method=method, options=search_options,
            interactions=interactions,
        )  # fmt: skip
        run = searches.run(seed)
        tasks = run.tasks
        require_search(method, search_options, gated, tasks)
        stages.expect(
            localization_steps(gated, tasks, method, search_options, verify, interactions, seeds)
        )
        baseline, _ = opened.intact_scores(run)
        searched = searches.search(run, seed=seed)
        ranking = searched.ranking
        selected = tuple(gated.components.names[column] for column in ranking.selected)
        if selected:
            stages.enter("verifying on the report items")
        after, verification = run.scores(ranking.selected) if selected else baseline, None
        if verify and selected:
            examiner = run.examiner(replace(QUICK, seed=seed))
            verification = examiner.examine(selected, report=stages.enter)
        universal = ranking.universal if selected else ()
        if universal:
            stages.enter("ablating alone what the others need too")
        shared = ablate_alone(
            universal, gated.components, tasks.trial(), run.measure, baseline, seed=seed
        )
        stages.enter("measuring pairs")
        leading, confirm = ranking.order[:interactions], searched.problem.confirm
        pairs = pairwise(gated.components.names, leading, confirm, run.measure)
        repeats = [searches.repeat(repeat_seed) for repeat_seed in range(seed + 1, seed + seeds)]
        return localization(
            run, method, searched, baseline, after, verification, shared, pairs, repeats,
            task_options=opened.options.task_options, seed=seed, started=started,
        )  # fmt: skip
