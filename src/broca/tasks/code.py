"""Tasks whose metric executes what the model wrote: broca's `code_eval`, which encloses it.

lm-eval's `mbpp` and `humaneval` fetch the metric `code_eval` from the hub when their files are
read; that one runs programs beside the evaluation, with a few functions of Python switched off.
While broca reads a task, `evaluate.load("code_eval")` gives the metric of this file instead: same
arguments, same results, every program in a sandbox. The task definitions are lm-eval's, unchanged.
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
from broca.tasks.sandbox import Sandbox, Verdict

_NAME = "code_eval"


class ProgramsWanted(Exception):
    """Raised by the metric in place of a score while programs are only collected."""


class CodeEval:
    """pass@k of candidate programs that are executed in a sandbox.

    Args:
        sandbox: Where they are executed; one that fits this machine by default, made when first
            needed.
    """

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._given = sandbox
        self._verdicts: dict[bytes, Verdict] = {}
        self._collected: dict[bytes, str] | None = None

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where programs are executed."""
        return self._given or Sandbox()

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
            predictions: For each problem, its candidates.
            references: For each problem, the tests that are appended to a candidate.
            k: Sizes of the samples for pass@k; those beyond a problem's candidates are left out.
            _: Its other arguments, workers and time limit, are the sandbox's own here.

        Returns:
            pass@k for each k, and what became of each candidate by problem.

        Raises:
            ValueError: There are not as many problems as tests.
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
            (len(several), sum(one["passed"] for _, one in several)) for several in results.values()
        ]
        scores = {
            f"pass@{size}": math.fsum(pass_at_k(total, right, size) for total, right in counts)
            / len(counts)
            for size in k
            if counts and all(total >= size for total, _ in counts)
        }
        return scores, results

    def verdicts(self, programs: Sequence[str]) -> list[Verdict]:
        """Executes programs, several at once, each only once."""
        named = {_digest(program): program for program in programs}
        missing = {name: one for name, one in named.items() if name not in self._verdicts}
        if self._collected is not None and missing:
            self._collected.update(missing)
            raise ProgramsWanted
        if missing:
            found = self.sandbox.run_all(list(missing.values()))
            self._verdicts.update(zip(missing, found, strict=True))
        return [self._verdicts[_digest(program)] for program in programs]

    def run_ahead(self, scorings: Iterable[Callable[[], object]]) -> None:
        """Executes all programs that some scorings will ask for, several at once.

        A score is computed for one row at a time; asked one by one, programs would wait for each
        other.

        Args:
            scorings: Functions that compute a score and may ask this metric.
        """
        self._collected = {}
        try:
            for scoring in scorings:
                with suppress(ProgramsWanted):
                    scoring()
            wanted = list(self._collected.values())
        finally:
            self._collected = None
        if wanted:
            self.verdicts(wanted)


def pass_at_k(total: int, right: int, size: int) -> float:
    """Probability that one of `size` candidates drawn from `total` is among the `right` ones.

    The unbiased estimator 1 - C(total - right, size) / C(total, size) (Chen et al. 2021, eq. 1).
    """
    return 1.0 - math.comb(total - right, size) / math.comb(total, size)


_metric = CodeEval()
# One for the process: lm-eval reads a task's module once, and the module keeps the metric it got.


def run_code_ahead(scorings: Iterable[Callable[[], object]]) -> None:
    """Executes the programs that several scorings will ask for; nothing where no task runs code."""
    if "sandbox" in _metric.__dict__:
        _metric.run_ahead(scorings)


def code_isolation() -> str:
    """What encloses the programs, for a reader of the result."""
    return _metric.sandbox.description


@contextmanager
def code_tasks(*, allowed: bool) -> Iterator[None]:
    """Gives tasks that are read within this context broca's `code_eval`.

    Args:
        allowed: Whether code may be executed at all.

    Raises:
        BadInput: A task needs the metric, and code may not be executed; or nothing on this machine
            can enclose it.
    """
    patched: list[tuple[Any, Any]] = []

    def patch(evaluate: Any) -> None:
        genuine = evaluate.load

        def load(path: str, *args: Any, **kwargs: Any) -> Any:
            if path != _NAME:
                return genuine(path, *args, **kwargs)
            if not allowed:
                raise BadInput(_REFUSAL.format(task="this task"))
            return _metric

        evaluate.load = load
        patched.append((evaluate, genuine))

    finder = _OnImport("evaluate", patch)
    if "evaluate" in sys.modules:
        patch(sys.modules["evaluate"])
    else:  # to import it takes seconds, and few tasks do
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()
        for evaluate, genuine in patched:
            evaluate.load = genuine


class _OnImport(MetaPathFinder):
    """Calls a function with a package as soon as somebody imports it, while on `sys.meta_path`."""

    def __init__(self, name: str, call: Callable[[Any], None]) -> None:
        self._name, self._call = name, call

    def leave(self) -> None:
        """Takes the finder from `sys.meta_path`, if it is there."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the other finders find, with a loader that calls the function."""
        if fullname != self._name:
            return None
        self.leave()
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, self._call)
        return spec


class _Calling(Loader):
    """Loads a module as another loader does, and calls a function with it."""

    def __init__(self, loader: Any, call: Callable[[Any], None]) -> None:
        self._loader, self._call = loader, call

    def create_module(self, spec: ModuleSpec) -> Any:
        """As the other loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Runs the module's code, then the function."""
        self._loader.exec_module(module)
        self._call(module)


_REFUSAL = (
    "{task} executes code that the model writes, which is off by default: allow it with "
    "`allow_code` (or confirm_run_unsafe_code after `broca lm-eval`); "
    "docs/sandbox.md says what encloses it and what that does not protect from"
)


def executes_code(task: Any) -> bool:
    """Whether a harness task executes what the model writes."""
    return bool(getattr(task, "UNSAFE_CODE", False)) or _uses_metric(task)


def require_enclosed(task: Any, *, allowed: bool) -> None:
    """Checks that a harness task executes no code, or only in the sandbox and with permission.

    Raises:
        BadInput: It executes code, and that was not allowed.
        TaskUnusable: It executes code by itself, outside of the sandbox.
    """
    if not executes_code(task):
        return
    if not allowed:
        raise BadInput(_REFUSAL.format(task=f"task '{task.task_name}'"))
    if not _uses_metric(task):
        raise TaskUnusable(
            f"task '{task.task_name}' executes code by means of its own, which broca cannot "
            f"enclose: it runs only those that use the metric {_NAME}, such as mbpp and humaneval"
        )
    _ = _metric.sandbox  # refuses now, before anything is measured, where nothing can enclose it


def _uses_metric(task: Any) -> bool:
    """Whether a function of the task's own module holds broca's metric."""
    listed = getattr(task.config, "metric_list", None) or []
    functions = [one.get("metric") for one in listed]
    functions.append(getattr(task.config, "process_results", None))
    return any(
        value is _metric
        for function in functions
        for value in getattr(function, "__globals__", {}).values()
    )


def _digest(program: str) -> bytes:
    return hashlib.sha256(program.encode("utf-8", errors="surrogatepass")).digest()


def _result(problem: int, number: int, verdict: Verdict) -> dict[str, Any]:
    return {
        "task_id": problem,
        "passed": verdict == "passed",
        "result": verdict,
        "completion_id": number,
    }
