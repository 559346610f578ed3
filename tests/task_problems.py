"""Problems of searches with several tasks, each on items of its own."""

import numpy as np

from broca.searches import METHODS, OtherTask, Problem, run


def problem_of(tasks, components, *, items, apart=100, k=5, rows=None, seed=0, **fields):
    """Returns the problem of the first task against the others.

    Args:
        tasks: Number of tasks. Items of task `t` start at `apart * t`.
        components: Number of components.
        items: Number of items of each task to search on, and as many more to confirm on.
        apart: Positions between the first items of two tasks.
        k: Maximum number of components to select.
        rows: Maximum number of rows.
        seed: Seed of the search.
        fields: More fields of the problem.
    """
    first, *others = (
        OtherTask(f"task {task}", start + np.arange(items), start + items + np.arange(items))
        for task, start in enumerate(apart * np.arange(tasks))
    )
    return Problem(
        components, first.items, k, rows, seed,
        confirm=first.confirm, others=tuple(others), **fields,
    )  # fmt: skip


def searched(search, execute, problem=None, **options):
    """Returns the result of a search, or of a method on a problem, and the plans that it had.

    Args:
        search: A search, or the name of a method.
        execute: Measures a plan.
        problem: The problem of the method.
        options: The options of the method.
    """
    plans = []

    def measure(plan):
        plans.append(plan)
        return execute(plan)

    if problem is not None:
        search = METHODS[search].search(problem, options)
    return run(search, measure), plans


def rows_of(plans):
    """Returns the rows of plans, with the cost of gradients."""
    return sum(plan.cost for plan in plans)
