"""Executors by name, and the settings of their processes."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import broca
from broca.errors import BadInput, MissingExtra
from broca.executors.hosts import ExecutorKind, open_host
from broca.executors.process import tune_process
from broca.options import ExecutorOptions


@dataclass(frozen=True)
class QueueOptions:
    """Settings of an executor of another package."""

    jobs: int = 1


def test_executors_are_found_and_take_what_they_need(monkeypatch):
    """Another package's is found by entry point, by name or by its settings.

    What an executor does not take, and a missing Ray, are refused before a model is loaded.
    """
    kind = ExecutorKind(
        name="queue", help="In a queue.", open=lambda options: options, takes=("workers",),
        settings=QueueOptions,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "theirs", SimpleNamespace(KIND=kind))
    entry = EntryPoint("queue", "theirs:KIND", "broca.executors")
    monkeypatch.setattr(
        "broca.plugins.entry_points",
        lambda group: [entry] if group == entry.group else [],
    )
    for options in (
        ExecutorOptions(executor="queue", workers=3),
        ExecutorOptions(executor=QueueOptions(jobs=2)),
    ):
        assert open_host(options) is options
    monkeypatch.setitem(sys.modules, "ray", None)
    for wrong, message in (
        ({"executor": "queue", "address": "auto"}, "`address` needs `executor` ray"),
        ({"workers": 3}, "`workers` needs `executor` ray or queue"),
        ({"gpus_per_worker": 0.5}, "`gpus_per_worker` needs `executor` ray"),
        ({"executor": "slurm"}, "'slurm' is unknown: use local or ray or queue"),
        ({"executor": "ray"}, r"pip install 'broca\[ray\]'"),
    ):
        with pytest.raises((BadInput, MissingExtra), match=message):
            broca.localize("no-such-model", task="addition", **wrong)


@pytest.mark.parametrize(("torch_is_there", "kept"), [(False, "2000"), (True, None)])
def test_waiting_threads_spin_briefly(monkeypatch, torch_is_there, kept):
    """`GOMP_SPINCOUNT` is set before broca imports torch; a user's value stays."""
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if not torch_is_there:
        monkeypatch.delitem(sys.modules, "torch")
    assert callable(broca.load)
    assert os.environ.get("GOMP_SPINCOUNT") == kept
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("ctypes.CDLL", lambda *_: 1 / 0)  # no C library outside Linux
    tune_process()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
