"""Tasks of a claim, as a verb loads and cuts them."""

from broca.options import RunOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace


def claimed(model, task, *, task_options=None, **claim):
    """Returns the tasks of a claim."""
    options = RunOptions(task_options=task_options or TaskOptions())
    with Workspace() as space:
        return Run(model, TaskSet(), space, options).claimed(task, **claim)
