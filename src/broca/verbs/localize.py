"""`localize`: finds the components that a task needs, and proves them on held-out items."""

from __future__ import annotations

import time
from dataclasses import replace

from broca.options import LocalizeOptions, verb
from broca.results.localization import Localization
from broca.runs import search
from broca.runs.assembling import localization
from broca.runs.session import ablation_of, open_run
from broca.verification import QUICK
from broca.verification.effects import ablate_alone
from broca.verification.interactions import pairwise, require_count


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
        require_count(options.interactions, len(components))
        search.require_selection(budget.k, opened.model)
        started = time.perf_counter()
        run = search.searching_run(opened, options, method, seed=seed)
        tasks, stages = run.tasks, run.stages
        search.require_search(method, budget, run.model, tasks)
        rows = search.search_rows(run.model, tasks, method, budget)
        proof = search.proof_rows(tasks.trial(), QUICK, members=budget.k) if options.verify else 0
        stages.expect(options.seeds * rows + proof + 2 * len(tasks.bank))
        baseline, _ = run.intact()
        searched = search.search(run, method, budget, seed=seed)
        ranking = searched.ranking
        selected = tuple(components.names[column] for column in ranking.selected)
        if selected:
            stages.enter("verifying on the report items")
        after, verification = run.scores(ranking.selected) if selected else baseline, None
        if options.verify and selected:
            examiner = run.examiner(replace(QUICK, seed=seed))
            verification = examiner.examine(selected, report=stages.enter)
        universal = ranking.universal if selected else ()
        if universal:
            stages.enter("ablating alone what the others need too")
        shared = ablate_alone(
            universal, components, tasks.trial(), run.measure, baseline, seed=seed
        )
        stages.enter("measuring pairs")
        leading, confirm = ranking.order[: options.interactions], searched.problem.confirm
        pairs = pairwise(components.names, leading, confirm, run.measure)
        again = range(seed + 1, seed + options.seeds)
        repeats = [search.repeat(opened, options, method, seed=number) for number in again]
        return localization(
            run, method, searched, baseline, after, verification, shared, pairs, repeats,
            task_options=run.options.task_options, seed=seed, started=started,
        )  # fmt: skip
