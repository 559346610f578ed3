"""`refit`: computes a new ranking from the rows that a run measured, without a model."""

from dataclasses import replace

import numpy as np

from broca.components import Component
from broca.options import RefitOptions, verb
from broca.recovery import make_recovery, recovery_name
from broca.recovery.uncertainty import interactions
from broca.results.localization import Refit
from broca.runs.replay import localized_in, mask_changes, problem_of_run, task_rows
from broca.searches import require_method
from broca.searches.compressed import rank_by_regression
from broca.searches.problem import require_selection
from broca.store import Journal, find_run


@verb(RefitOptions)
def refit(options: RefitOptions) -> Refit:
    """Computes a new ranking from the rows of a run's journal, without a model.

    The regression predicts, for every mask that the search measured on the task, the mean change
    from the intact model on the same items. It leaves out rows of other tasks and rows with another
    response than the first of the search.

    Raises:
        BrocaError: The folder contains no run of `localize`, or its journal too few rows of it.
    """
    recovery, k = options.recovery, options.k
    run_folder = localized_in(options.run)
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record.digests.get("run"))
        problem = problem_of_run(journal, run)
        rows = task_rows(journal, run, problem)
    method = str(run.search["method"])
    masks, changes = mask_changes(rows)
    if require_method(method).one_mask_size:
        sizes = masks.sum(axis=1)
        usual = sizes == np.bincount(sizes).argmax()
        masks, changes = masks[usual], changes[usual]
    if k is not None:
        require_selection(k, problem.components, run.settings["components"])
        problem = replace(problem, k=k)
    ranking = rank_by_regression(problem, masks, changes, recovery, {}, resamples=options.resamples)
    return Refit(
        task=str(run.settings["task"]), method=method, recovery=recovery_name(recovery),
        response=rows.condition.response, rows=len(rows.responses), masks=len(masks),
        ranking=ranking.lines([Component.parse(name) for name in rows.components]),
        selected=tuple(rows.components[column] for column in ranking.selected),
        reason=ranking.reason,
        additivity=ranking.additivity,
        interactions=interactions(
            masks, changes, make_recovery(recovery), rows.components, seed=problem.seed
        )
        if options.interactions
        else None,
        notes=ranking.notes,
    )  # fmt: skip
