"""Tasks whose metric executes code that the model wrote: broca's sandboxed `code_eval`.

lm-eval's `mbpp` and `humaneval` fetch the metric `code_eval` from the hub when their files are
read; that metric runs programs in subprocesses with a few Python functions disabled. While broca
reads a task, `evaluate.load("code_eval")` returns the metric of this file instead: it has the same
arguments and the same results, and runs every program in a sandbox. The task definitions are
lm-eval's, unchanged.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from broca.errors import BadInput, TaskUnusable
from broca.tasks.metrics import listed_metrics
from broca.tasks.sandbox import ProgramOutcome, Sandbox

_NAME = "code_eval"


class ProgramsWanted(Exception):
    """Raised by the metric instead of a score while programs are only collected."""


class CodeEval:
    """pass@k of candidate programs that are executed in a sandbox.

    Args:
        sandbox: The sandbox; by default one that fits this machine, made on first use.
    """

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox
        self._verdicts: dict[bytes, ProgramOutcome] = {}
        self._collected: dict[bytes, str] | None = None

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox in which programs are executed."""
        return self._sandbox or Sandbox()

    def compute(
        self,
        *,
        predictions: Sequence[Sequence[str]],
        references: Sequence[str],
        k: Sequence[int] = (1, 10, 100),
        **_: Any,
    ) -> tuple[dict[str, float], dict[int, list[tuple[int, dict[str, Any]]]]]:
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
        verdicts = iter(self.verdicts([program for several in programs for program in several]))
        results: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        for problem, several in enumerate(programs):
            results[problem] = [
                (number, _result(problem, number, next(verdicts))) for number in range(len(several))
            ]
        counts = [
            (len(outcomes), sum(outcome["passed"] for _, outcome in outcomes))
            for outcomes in results.values()
        ]
        scores = {
            f"pass@{size}": math.fsum(pass_at_k(total, right, size) for total, right in counts)
            / len(counts)
            for size in k
            if counts and all(total >= size for total, _ in counts)
        }
        return scores, results

    def verdicts(self, programs: Sequence[str]) -> list[ProgramOutcome]:
        """Executes distinct programs, several at once."""
        by_key = {_digest(program): program for program in programs}
        missing = {key: program for key, program in by_key.items() if key not in self._verdicts}
        if self._collected is not None and missing:
            self._collected.update(missing)
            raise ProgramsWanted
        if missing:
            verdicts = self.sandbox.run_all(list(missing.values()))
            self._verdicts.update(zip(missing, verdicts, strict=True))
        return [self._verdicts[_digest(program)] for program in programs]

    def run_ahead(self, scorings: Iterable[Callable[[], object]]) -> None:
        """Executes all programs that some scorings need, several at once.

        Scores are computed row by row, so that programs would otherwise run one after the other.

        Args:
            scorings: Functions that compute a score and may use this metric.
        """
        self._collected = {}
        try:
            for scoring in scorings:
                with suppress(ProgramsWanted):
                    scoring()
            programs = list(self._collected.values())
        finally:
            self._collected = None
        if programs:
            self.verdicts(programs)


def pass_at_k(total: int, right: int, size: int) -> float:
    """Returns the probability that a sample of `size` of `total` candidates has a right one.

    The unbiased estimator 1 - C(total - right, size) / C(total, size) (Chen et al. 2021, eq. 1).
    """
    return 1.0 - math.comb(total - right, size) / math.comb(total, size)


_metric = CodeEval()
# One for the process: lm-eval reads a task's module once, and the module keeps its metric.


def run_code_ahead(scorings: Iterable[Callable[[], object]]) -> None:
    """Executes the programs that several scorings need; does nothing if no task runs code."""
    if "sandbox" in _metric.__dict__:
        _metric.run_ahead(scorings)


def code_isolation() -> str:
    """Describes the isolation of the programs, for the reader of a result."""
    return _metric.sandbox.description


@contextmanager
def code_tasks(*, allowed: bool, what: str = "this task") -> Iterator[None]:
    """Lets tasks that are read within this context use broca's `code_eval`.

    Args:
        allowed: Whether code may be executed at all.
        what: The task or group that is read, as the refusal names it.

    Raises:
        BadInput: A task needs the metric, and code may not be executed or cannot be isolated on
            this machine.
    """
    patched: list[tuple[Any, Any]] = []

    def patch(evaluate: Any) -> None:
        genuine = evaluate.load

        def load(path: str, *args: Any, **kwargs: Any) -> Any:
            if path != _NAME:
                return genuine(path, *args, **kwargs)
            if not allowed:
                raise BadInput(_REFUSAL.format(task=what))
            return _metric

        evaluate.load = load
        patched.append((evaluate, genuine))

    finder = _OnImport("evaluate", patch)
    if "evaluate" in sys.modules:
        patch(sys.modules["evaluate"])
    else:  # importing it takes seconds, and few tasks need it
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()
        for evaluate, genuine in patched:
            evaluate.load = genuine


class _OnImport(MetaPathFinder):
    """A finder on `sys.meta_path` that calls a function with a package when it is imported."""

    def __init__(self, name: str, call: Callable[[Any], None]) -> None:
        self._name, self._call = name, call

    def leave(self) -> None:
        """Removes the finder from `sys.meta_path` if it is there."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns the spec of the other finders, with a loader that calls the function."""
        if fullname != self._name:
            return None
        self.leave()
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, self._call)
        return spec


class _Calling(Loader):
    """Loads a module with another loader, and calls a function with it."""

    def __init__(self, loader: Any, call: Callable[[Any], None]) -> None:
        self._loader, self._call = loader, call

    def create_module(self, spec: ModuleSpec) -> Any:
        """Creates the module with the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Executes the module, then calls the function."""
        self._loader.exec_module(module)
        self._call(module)


_REFUSAL = (
    "{task} executes code that the model writes, which is off by default: allow it with "
    "`allow_code` (or confirm_run_unsafe_code after `broca lm-eval`); "
    "docs/sandbox.md describes the isolation and its limits"
)


def executes_code(task: Any) -> bool:
    """Whether a harness task executes code that the model writes."""
    return bool(getattr(task, "UNSAFE_CODE", False)) or _uses_metric(task)


def require_enclosed(task: Any, *, allowed: bool) -> None:
    """Refuses a harness task that executes code without permission or outside of the sandbox.

    Raises:
        BadInput: The task executes code, and this was not allowed.
        TaskUnusable: The task executes code itself, outside of the sandbox.
    """
    if not executes_code(task):
        return
    if not allowed:
        raise BadInput(_REFUSAL.format(task=f"task '{task.task_name}'"))
    if not _uses_metric(task):
        raise TaskUnusable(
            f"task '{task.task_name}' executes code by itself, which broca cannot "
            f"isolate: it runs only tasks that use the metric {_NAME}, such as mbpp and humaneval"
        )
    _ = _metric.sandbox  # refuses before anything is measured if no isolation is possible


def _uses_metric(task: Any) -> bool:
    """Whether a function of the task's module contains broca's metric."""
    functions = [*listed_metrics(task), getattr(task.config, "process_results", None)]
    return any(
        value is _metric
        for function in functions
        for value in getattr(function, "__globals__", {}).values()
    )


def _digest(program: str) -> bytes:
    return hashlib.sha256(program.encode("utf-8", errors="surrogatepass")).digest()


def _result(problem: int, number: int, verdict: ProgramOutcome) -> dict[str, Any]:
    return {
        "task_id": problem,
        "passed": verdict == "passed",
        "result": verdict,
        "completion_id": number,
    }
