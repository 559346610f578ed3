"""Tasks of a claim, as a verb loads and cuts them."""

from broca import Claim, Workspace
from broca.options import RunOptions, TaskOptions
from broca.results.base import ZEROED, Interval
from broca.results.verification import Verdict
from broca.runs.run import Run, model_info
from broca.runs.task_sets import TaskSet


def claimed(model, task, *, task_options=None, **claim):
    """Returns the tasks of a claim."""
    options = RunOptions(task_options=task_options or TaskOptions())
    with Workspace() as space:
        return Run(model, TaskSet(), space, options).claimed(task, **claim)


def claim_about(model, task, heads, *, others=("sorting",), drop=0.1):
    """Returns a claim that a task loses some without heads, of a run whose seed was 0."""
    run = Run(model, claimed(model, task, others=list(others), items=8, seed=0), Workspace())
    lost = Interval(drop, drop / 2, drop)
    return Claim(
        model=model_info(model), digests=run.digests, task=task, heads=tuple(heads),
        components="heads", ablation=ZEROED, others=others, same_skill=(), seed=0,
        task_options={}, drop=lost, off_target=Interval(0.0, 0.0, 0.0), specific=lost,
        verdict=Verdict("specific", "it is lost"), documents=run.tasks.documents,
    )  # fmt: skip
