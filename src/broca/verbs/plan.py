"""`plan`: the cost of each method on this machine, from a few timed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from broca import searches
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options, without
from broca.results.cost_estimate import CostEstimate
from broca.runs.problems import problem_of
from broca.runs.progress import Stages
from broca.runs.provenance import model_info
from broca.runs.run import tokens_of
from broca.runs.setup import open_session
from broca.runs.timing import count_rows, peak_memory, speeds_of
from broca.runs.workspace import Workspace
from broca.tasks import Task


@takes_options
def plan(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    seed: int = 0,
    sample: int = 32,
    search_options: Annotated[
        SearchOptions, without("method", "response", "options", "max_minutes")
    ],
    run_options: Annotated[RunOptions, without("ablation_options", "journal_options")],
) -> CostEstimate:
    """Times some rows of the task and estimates the cost of each method.

    Each method's search is run without a model, and its rows are counted.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task.
        others: The tasks that the heads should not affect, as in `localize`.
        seed: Seed of all random draws.
        sample: Number of rows to time for each response.

    Raises:
        BrocaError: Bad input.
    """
    if sample < 1:
        raise BadInput(f"`sample` must be at least 1, not {sample}")
    stages = Stages(run_options.on_progress)
    with (
        Workspace(executor=run_options.executor_options) as space,  # timed rows are not kept
        open_session(
            model, run_options.within(space), stages, task=task, others=[others]
        ) as opened,
    ):
        gated = opened.model
        tasks = opened.claimed(task, others=others, items=search_options.items, seed=seed)
        run = opened.run(tasks)
        stages.enter("timing some rows")
        speeds, timed = speeds_of(run, seed=seed, sample=sample)
        continuous = "probability" in speeds
        problem = problem_of(
            gated, tasks, tasks.places["locate"], search_options, seed=seed, continuous=continuous
        )
        lengths = np.array([tokens_of(item) for _, item in tasks.bank], dtype=np.int64)
        stages.enter("counting the rows of every method")
        return CostEstimate(
            model=model_info(gated),
            task=tasks.task,
            items=len(tasks.places["locate"][tasks.task]),
            components=len(gated.components),
            timed_rows=timed,
            tokens_per_second=speeds,
            memory_bytes=peak_memory(gated),
            proof_rows=2 * sum(len(places) for places in tasks.places["report"].values()),
            methods=tuple(
                count_rows(method, problem, lengths, speeds) for method in searches.METHODS
            ),
        )
