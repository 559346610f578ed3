"""Executors by name, and the settings of their processes."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import broca
from broca.errors import BadInput, MissingExtra
from broca.executors.hosts import ExecutorKind, executors, open_host
from broca.executors.process import tune_process
from broca.options import ExecutorOptions


@pytest.mark.parametrize(
    "option", [{"workers": 2}, {"address": "auto"}, {"gpus_per_worker": 0.5}], ids=list
)
def test_an_option_of_another_executor_is_refused(option):
    """An option that only another executor takes is refused before a model is loaded."""
    with pytest.raises(BadInput, match=f"`{next(iter(option))}` needs `executor` ray"):
        broca.localize("no-such-model", task="addition", **option)


@dataclass(frozen=True)
class QueueOptions:
    """Settings of an executor of another package."""

    jobs: int = 1


def test_an_executor_of_another_package_takes_what_it_needs(monkeypatch):
    """It is found by entry point, by name or by its settings, and takes the options it names."""
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
    with pytest.raises(BadInput, match="`address` needs `executor` ray"):
        open_host(ExecutorOptions(executor="queue", address="auto"))
    with pytest.raises(BadInput, match="`workers` needs `executor` ray or queue"):
        open_host(ExecutorOptions(workers=3))
    assert list(executors()) == ["local", "ray", "queue"]
    for name in (3, "slurm"):
        with pytest.raises(BadInput, match=f"'{name}' is unknown: use local or ray or queue"):
            open_host(ExecutorOptions(executor=name))


def test_missing_ray_names_the_command(monkeypatch):
    """A missing Ray is refused with the command that installs it, before a model is loaded."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'broca\[ray\]'"):
        broca.localize("no-such-model", task="addition", executor="ray")


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
