"""`refit`: computes a new ranking from the rows that a run measured, without a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from broca.components import Component, ComponentSet
from broca.errors import BadInput
from broca.journal import Journal
from broca.journal.reading import find_run
from broca.recovery import recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.results.localization import AdditivityInfo, ranked
from broca.results.refit import Refit
from broca.runs.journaled_runs import localized_in, mask_changes, problem_of_run, task_rows
from broca.searches import require_method
from broca.searches.regression import rank_by_regression


def refit(
    folder: str | Path, *, recovery: Any = "lasso", k: int | None = None, resamples: int = RESAMPLES
) -> Refit:
    """Computes a new ranking from the rows of a run's journal, without a model.

    The regression predicts, for every mask that the search measured on the task, the mean change
    from the intact model on the same items. It leaves out rows of other tasks and rows with another
    response than the first of the search.

    Args:
        folder: The folder of a run of `broca localize`, finished or not.
        recovery: Name of a recovery, or any scikit-learn regressor with `coef_`.
        k: Maximum number of components to select; by default as in the run.
        resamples: Number of resamples of the masks; 0 leaves out intervals and frequencies.

    Raises:
        BrocaError: The folder contains no run of `localize`, or its journal too few rows of it.
    """
    for name, value, least in (("k", k, 1), ("resamples", resamples, 0)):
        if value is not None and value < least:
            raise BadInput(f"`{name}` must be at least {least}, not {value}")
    run_folder = localized_in(folder)
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record["digests"].get("run"))
        problem = problem_of_run(journal, run)
        rows = task_rows(journal, run, problem)
    method = str(run.search["method"])
    masks, changes = mask_changes(rows)
    if require_method(method).one_mask_size:
        sizes = masks.sum(axis=1)
        usual = sizes == np.bincount(sizes).argmax()
        masks, changes = masks[usual], changes[usual]
    if k is not None:
        problem = replace(problem, k=k)
    ranking = rank_by_regression(problem, masks, changes, recovery, resamples=resamples)
    additivity = ranking.additivity
    components = ComponentSet(tuple(Component.parse(name) for name in run.components))
    return Refit(
        task=str(run.settings["task"]),
        method=method,
        recovery=recovery_name(recovery),
        response=rows.response,
        rows=len(rows.responses),
        masks=len(masks),
        ranking=ranked(components, ranking.effects, ranking.order, **ranking.details),
        selected=tuple(components.names[column] for column in ranking.selected),
        reason=ranking.reason,
        additivity=None if additivity is None else AdditivityInfo(**asdict(additivity)),
        notes=ranking.notes,
    )
