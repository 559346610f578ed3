"""Problems of searches with several tasks, each on items of its own."""

import numpy as np

from broca.searches import OtherTask, Problem


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
