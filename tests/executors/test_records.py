"""Executors by name."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import broca
from broca.engine import EngineOptions
from broca.errors import BadInput, MissingExtra
from broca.executors import Asker
from broca.executors.base import Setting
from broca.executors.records import ExecutorKind, ExecutorSpec, executors, open_host
from broca.options import ExecutorOptions, ModelOptions


def test_unknown_executor_is_refused():
    """An unknown executor is refused with the names of the known ones."""
    with pytest.raises(BadInput, match="use local or ray"):
        broca.localize("no-such-model", task="addition", executor="slurm")


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
        "importlib.metadata.entry_points",
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
    with pytest.raises(BadInput, match=r"'3' is unknown: use local or ray or queue"):
        open_host(ExecutorOptions(executor=3))


def test_the_menu_names_this_process_first():
    """`local` is listed first, and every record has a name, a sentence and a host."""
    menu = executors()
    assert list(menu) == ["local", "ray"]
    for name, kind in menu.items():
        assert kind.name == name
        assert kind.help
        assert callable(kind.open)


def test_the_host_of_this_process_measures_with_the_model_itself(tiny):
    """The local host makes a new executor for each run, on the model's device."""
    host = open_host(ExecutorOptions())
    spec = ExecutorSpec(
        model=tiny, asker=Asker([]), setting=Setting(),
        engine_options=EngineOptions(token_budget=99), model_options=ModelOptions(),
        on_progress=lambda progress: None,
    )  # fmt: skip
    try:
        local_executors = [host.executor(spec) for _ in range(2)]
        assert local_executors[0] is not local_executors[1]
        assert {executor.runner.device for executor in local_executors} == {"cpu"}
        assert {executor.runner.token_budget for executor in local_executors} == {99}
        assert not local_executors[0].concurrent
    finally:
        host.close()


def test_missing_ray_names_the_command(monkeypatch):
    """A missing Ray is refused with the command that installs it, before a model is loaded."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'broca\[ray\]'"):
        broca.localize("no-such-model", task="addition", executor="ray")
