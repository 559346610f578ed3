"""Tasks whose metric executes code that the model wrote: broca's own `code_eval`.

lm-eval's `mbpp` and `humaneval` fetch the metric `code_eval` from the hub when their files are
read; that metric runs programs in subprocesses with a few Python functions disabled. While broca
reads a task, `evaluate.load("code_eval")` returns the metric of this file instead: it has the same
arguments and the same rates, and runs every program in a sandbox. The task definitions are
lm-eval's, unchanged.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain
from statistics import fmean
from types import ModuleType
from typing import Any

from lm_eval.tasks import TaskManager

from broca.errors import BadInput, TaskUnusable
from broca.tasks.metrics import listed_metrics
from broca.tasks.sandbox import ProgramOutcome, Sandbox


class _ProgramsWanted(BaseException):
    """Raised by the metric instead of a score while programs are collected; no code catches it."""


class CodeEval:
    """pass@k of candidate programs that are executed in a sandbox, each of them once.

    Args:
        sandbox: The sandbox; it must be set before the first score.
    """

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox
        self._outcomes: dict[str, ProgramOutcome] = {}
        self._collected: list[str] | None = None

    def enter(self) -> None:
        """Makes the sandbox, unless it is there.

        Raises:
            BadInput: Programs cannot be isolated on this machine.
        """
        self.sandbox = self.sandbox or Sandbox()

    def compute(
        self,
        *,
        predictions: Sequence[Sequence[str]],
        references: Sequence[str],
        k: Sequence[int] = (1, 10, 100),
        **_: Any,
    ) -> tuple[dict[str, float], list[list[ProgramOutcome]]]:
        """Scores candidates as Hugging Face's metric `code_eval` does.

        Args:
            predictions: Candidates of each problem.
            references: Tests of each problem, which are appended to a candidate.
            k: Sizes of the samples for pass@k; those beyond a problem's candidates are left out.
            _: Other arguments of the metric, workers and time limit, which the sandbox sets here.

        Returns:
            pass@k for each k, and the outcome of each candidate by problem.

        Raises:
            ValueError: The numbers of problems and of tests differ.
        """
        programs = [
            [f"{candidate}\n{tests}" for candidate in candidates]
            for candidates, tests in zip(predictions, references, strict=True)
        ]
        self.outcomes(list(chain(*programs)))  # all problems at once
        outcomes = [self.outcomes(several) for several in programs]
        fewest = min(map(len, outcomes), default=0)
        rates = {
            f"pass@{size}": fmean(
                pass_at_k(len(several), several.count("passed"), size) for several in outcomes
            )
            for size in k
            if size <= fewest
        }
        return rates, outcomes

    def outcomes(self, programs: Sequence[str]) -> list[ProgramOutcome]:
        """Executes those programs that were not executed before, several at once."""
        missing = [program for program in dict.fromkeys(programs) if program not in self._outcomes]
        if missing:
            if self._collected is not None:
                self._collected += missing
                raise _ProgramsWanted
            assert self.sandbox is not None
            self._outcomes.update(zip(missing, self.sandbox.run_all(missing), strict=True))
        return [self._outcomes[program] for program in programs]

    def run_ahead(self, scorings: Iterable[Callable[[], object]]) -> None:
        """Executes the programs of several scorings at once, which score row by row afterwards.

        Does nothing if no task executes code.
        """
        if self.sandbox is None:
            return
        collected = self._collected = []
        try:
            for scoring in scorings:
                with suppress(_ProgramsWanted):
                    scoring()
        finally:
            self._collected = None
        self.outcomes(collected)


def pass_at_k(total: int, right: int, size: int) -> float:
    """Returns the probability that a sample of `size` of `total` candidates has a right one.

    The unbiased estimator 1 - C(total - right, size) / C(total, size) (Chen et al. 2021, eq. 1).
    """
    return 1.0 - math.comb(total - right, size) / math.comb(total, size)


_metric = CodeEval()
# One for the process: lm-eval reads a task's module once, and the module keeps its metric.

run_code_ahead = _metric.run_ahead


@contextmanager
def code_tasks(allowed: bool, *, what: str = "this task") -> Iterator[None]:
    """Lets tasks that lm-eval reads within this context use broca's `code_eval`, or refuses them.

    Their modules import a stand-in for the package `evaluate`, which has broca's metric and imports
    the package, which takes seconds, only for something else.

    Args:
        allowed: Whether programs may be executed, in the sandbox.
        what: The task or group that is read, as the refusal names it.

    Raises:
        BadInput: A task needs the metric, and code may not be executed or cannot be isolated on
            this machine.
        TaskUnusable: A task executes code itself, outside of the sandbox.
    """
    load_tasks = TaskManager.load

    def load_enclosed(manager: TaskManager, names: Any) -> Any:
        loaded = load_tasks(manager, names)
        for task in loaded["tasks"].values():
            require_enclosed(task, allowed)
        return loaded

    stand_in = ModuleType("evaluate")
    known = {"evaluate": sys.modules["evaluate"]} if "evaluate" in sys.modules else {}

    def package(name: str) -> Any:
        if not known:
            within = sys.modules.get("evaluate") is stand_in
            if within:
                del sys.modules["evaluate"]
            known["evaluate"] = import_module("evaluate")
            if within:
                sys.modules["evaluate"] = stand_in
        return getattr(known["evaluate"], name)

    def load(path: str, *args: Any, **kwargs: Any) -> Any:
        if path != "code_eval":
            return package("load")(path, *args, **kwargs)
        if not allowed:
            raise BadInput(_REFUSAL.format(task=what))
        _metric.enter()
        return _metric

    vars(stand_in).update(load=load, __getattr__=package)
    sys.modules["evaluate"] = stand_in
    TaskManager.load = load_enclosed
    try:
        yield
    finally:
        TaskManager.load = load_tasks
        del sys.modules["evaluate"]
        sys.modules.update(known)


_REFUSAL = (
    "{task} executes code that the model writes, which is off by default: allow it with "
    "`allow_code` (or confirm_run_unsafe_code after `broca lm-eval`); "
    "docs/sandbox.md describes the isolation and its limits"
)


_EVALUATES = "lm_eval.tasks.score.math.math_grader"
"""lm-eval's module that evaluates answers by sympy's `parse_expr`, as Python, and is not marked."""


def executes_code(task: Any) -> bool:
    """Whether a harness task executes code that the model writes."""
    return bool(getattr(task, "UNSAFE_CODE", False)) or any(
        used is _metric or getattr(used, "__module__", "") == _EVALUATES for used in _used_by(task)
    )


def require_enclosed(task: Any, allowed: bool) -> None:
    """Refuses a harness task that executes code without permission or outside of the sandbox.

    Raises:
        BadInput: The task executes code, and this was not allowed or cannot be isolated.
        TaskUnusable: The task executes code itself, outside of the sandbox.
    """
    if not executes_code(task):
        return
    if not allowed:
        raise BadInput(_REFUSAL.format(task=f"task '{task.task_name}'"))
    if all(used is not _metric for used in _used_by(task)):
        raise TaskUnusable(
            f"task '{task.task_name}' executes code by itself, which broca cannot "
            "isolate: it runs only tasks that use the metric code_eval, such as mbpp and humaneval"
        )
    _metric.enter()  # refuses before anything is measured


def _used_by(task: Any) -> Iterator[Any]:
    """Yields what the modules of the functions that score a task have or import."""
    for function in (*listed_metrics(task), getattr(task.config, "process_results", None)):
        yield from getattr(function, "__globals__", {}).values()
