"""`plan`: the cost of each method on this machine, from a few timed rows."""

import platform
from dataclasses import asdict

import numpy as np

from broca import searches
from broca.errors import BadInput
from broca.options import PlanOptions, verb
from broca.results.runs import CostEstimate, MethodCost
from broca.runs.run import model_info, tokens_of
from broca.runs.search import problem_of
from broca.runs.session import open_run
from broca.runs.speed import speed_of
from broca.searches import Method, Problem
from broca.searches.problem import require_selection


@verb(PlanOptions)
def plan(options: PlanOptions) -> CostEstimate:
    """Times some rows of the task and estimates the cost of each method.

    A journal keeps the timing: the same call gives the same estimate.

    Raises:
        BrocaError: Bad input.
    """
    with open_run(
        options.model, options.run_options, task=options.task, others=[options.others], warns=False
    ) as opened:
        gated, stages, budget = opened.model, opened.stages, options.search_options
        require_selection(budget.k, len(gated.components), gated.kinds)
        tasks = opened.claimed(
            options.task, others=options.others, items=budget.items, seed=options.seed
        )
        run = opened.on(
            tasks,
            settings={
                "verb": "plan", "task": tasks.task, "seed": options.seed, "sample": options.sample,
                "components": gated.kinds, "machine": platform.node(), "device": str(gated.device),
                "engine": asdict(opened.options.engine_options),
                "executor": str(opened.options.executor_options),
            },
        )  # fmt: skip
        stages.enter("timing some rows")
        speed = speed_of(run, sample=options.sample)
        run.finish()
        continuous = "probability" in speed.tokens_per_second
        problem = problem_of(
            gated, tasks, tasks.places["locate"], budget, seed=options.seed, continuous=continuous
        )
        tokens = float(np.mean([tokens_of(tasks.bank[place][1]) for place in problem.items]))
        return CostEstimate(
            model=model_info(gated), task=tasks.task, items=len(problem.items),
            components=len(gated.components), timed_rows=speed.rows,
            tokens_per_second=speed.tokens_per_second, memory_bytes=speed.memory_bytes,
            methods=tuple(
                _cost(method, problem, tokens, speed.tokens_per_second)
                for method in searches.METHODS.values()
            ),
        )  # fmt: skip


def _cost(method: Method, problem: Problem, tokens: float, speeds: dict[str, float]) -> MethodCost:
    """Returns the cost of a method: the given budget, or the rows that it usually measures."""
    try:
        rows = method.most_rows(problem)
    except BadInput as error:
        return MethodCost(method.name, 0, 0, 0.0, "accuracy", str(error))
    response = method.response if "probability" in speeds else "accuracy"
    # a margin takes as long as its probability
    speed = speeds["accuracy" if response == "accuracy" else "probability"]
    return MethodCost(method.name, rows, round(rows * tokens), rows * tokens / speed, response)
