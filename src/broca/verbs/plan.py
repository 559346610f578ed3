"""`plan`: the cost of each method on this machine, from a few timed rows."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import numpy as np

from broca import searches
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options, without
from broca.results.cost_estimate import CostEstimate
from broca.runs.problems import problem_of, require_selection
from broca.runs.provenance import model_info
from broca.runs.run import tokens_of
from broca.runs.setup import open_session
from broca.runs.timing import count_rows, timing_of
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
    run_options: Annotated[RunOptions, without("ablation_options", "keep_outputs")],
) -> CostEstimate:
    """Times some rows of the task and estimates the cost of each method.

    Each method's search is run without a model, and its rows are counted.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task.
        others: The tasks that the heads should not affect, as in `localize`.
        seed: Seed of the item split, and of the searches whose rows are counted.
        sample: Number of rows to time for each response.
        journal: File that keeps the timing: the same call gives the same estimate. With None
            nothing is kept.

    Raises:
        BrocaError: Bad input.
    """
    if sample < 1:
        raise BadInput(f"`sample` must be at least 1, not {sample}")
    with open_session(model, run_options, task=task, others=[others], warns=False) as opened:
        gated, stages = opened.model, opened.stages
        require_selection(search_options.k, gated)
        tasks = opened.claimed(task, others=others, items=search_options.items, seed=seed)
        run = opened.run(
            tasks,
            settings={
                "verb": "plan", "task": tasks.task, "seed": seed, "sample": sample,
                "machine": platform.node(), "device": str(gated.device),
                "engine": asdict(run_options.engine_options),
                "executor": str(run_options.executor_options),
            },
        )  # fmt: skip
        stages.enter("timing some rows")
        timing = timing_of(run, sample=sample)
        run.finish()
        speeds = timing.tokens_per_second
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
            timed_rows=timing.rows,
            tokens_per_second=speeds,
            memory_bytes=timing.memory_bytes,
            proof_rows=2 * sum(len(places) for places in tasks.places["report"].values()),
            methods=tuple(
                count_rows(method, problem, lengths, speeds) for method in searches.METHODS
            ),
        )
