"""The metric of lm-eval's code tasks: its scores, permission and isolation."""

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace as Namespace

import evaluate
import numpy as np
import pytest
from lm_eval.tasks import TaskManager

from broca.errors import BadInput, TaskUnusable
from broca.tasks.catalog import Catalog
from broca.tasks.code import CodeEval, code_tasks, pass_at_k, require_enclosed

RIGHT, WRONG = "def f(n):\n    return n + 1", "def f(n):\n    return n - 1"
TESTS = "assert f(1) == 2\nassert f(2) == 3"


class ReadingSandbox:
    """A stand-in for a sandbox: programs with `n + 1` pass."""

    def run_all(self, programs):
        """Returns verdicts by the programs' text."""
        return ["passed" if "n + 1" in program else "failed" for program in programs]


def test_pass_at_k_is_the_product_form_of_the_paper():
    """pass@k equals the product form, 1 - prod(1 - k / i) for i from n - c + 1 to n."""
    for total, right, size in [(200, 13, 100), (200, 199, 1), (164, 1, 10)]:
        stable = 1 - np.prod(1 - size / np.arange(total - right + 1, total + 1))
        assert pass_at_k(total, right, size) == pytest.approx(stable, rel=1e-9)
    assert pass_at_k(10, 8, 3) == 1


def test_scores_are_means_over_problems():
    """pass@k is a mean over problems; a k above the candidates of a problem is left out."""
    metric = CodeEval(ReadingSandbox())
    candidates = [[RIGHT, WRONG, WRONG], [WRONG, WRONG]]
    scores, results = metric.compute(references=[TESTS] * 2, predictions=candidates, k=[1, 2, 3])
    assert scores == {"pass@1": pytest.approx(1 / 6), "pass@2": pytest.approx((2 / 3) / 2)}
    assert results == [["passed", "failed", "failed"], ["failed", "failed"]]


def test_other_metrics_are_the_genuine_ones(monkeypatch):
    """`code_tasks` replaces `code_eval` only, and only within the context."""
    loaded = []
    monkeypatch.setattr(evaluate, "load", lambda path, *args, **kwargs: loaded.append(path))
    monkeypatch.setattr("broca.tasks.code._metric", CodeEval(ReadingSandbox()))
    before = evaluate.load
    with code_tasks(True):
        import evaluate as seen

        seen.load("bleu")
        assert seen.__version__ == evaluate.__version__
        assert isinstance(seen.load("code_eval"), CodeEval)
    assert loaded == ["bleu"]
    assert evaluate.load is before
    assert sys.modules["evaluate"] is evaluate


def test_threads_read_tasks_in_turn():
    """Threads that read tasks at once get them, and leave lm-eval and `evaluate` as they were."""
    before = TaskManager.load
    with ThreadPoolExecutor(4) as threads:
        read = list(threads.map(Catalog().harness_tasks, ["addition", "capitals"] * 10))
    assert all(len(tasks) == 1 for tasks, _ in read)
    assert TaskManager.load is before
    assert sys.modules["evaluate"] is evaluate


def test_task_that_executes_code_by_itself_is_refused(monkeypatch):
    """A task that executes code outside of the sandbox is refused even with permission."""
    config = Namespace(metric_list=[{"metric": "exact_match"}], process_results=lambda *_: {})
    task = Namespace(task_name="own_means", UNSAFE_CODE=True, config=config)
    with pytest.raises(BadInput, match="`allow_code`"):
        require_enclosed(task, False)
    with pytest.raises(TaskUnusable, match=r"'own_means'.*by itself.*cannot isolate"):
        require_enclosed(task, True)
    monkeypatch.setattr(TaskManager, "load", lambda *_: {"tasks": {"own_means": task}})
    with code_tasks(True), pytest.raises(TaskUnusable):  # as `broca lm-eval` reads it
        TaskManager.load(None, ["own_means"])
    task.UNSAFE_CODE = False
    require_enclosed(task, False)
    # not marked, but sympy evaluates the model's answers as Python
    config.process_results = import_module("lm_eval.tasks.score.math.utils_math").process_results
    with pytest.raises(TaskUnusable, match="executes code by itself"):
        require_enclosed(task, True)
