"""What the neuron verbs do first: open the model with its neurons, load tasks, begin a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from broca.models import GatedModel
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import NeuronRun
from broca.options import (
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    ModelOptions,
    TaskOptions,
)
from broca.runs.progress import Report, Stages
from broca.runs.run import Run
from broca.runs.setup import model_in_use, workspace
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace


@dataclass(frozen=True, eq=False)
class Opened:
    """A model with its neurons, and where it is measured.

    Attributes:
        neurons: The model.
        space: The journal and the workers.
        stages: Receives what is going on.
        engine_options: Size of batches and sharing of work.
        model_options: How workers load the model.
    """

    neurons: NeuronModel
    space: Workspace
    stages: Stages
    engine_options: EngineOptions
    model_options: ModelOptions

    @property
    def model(self) -> GatedModel:
        """The model."""
        return self.neurons.model

    @property
    def deltas(self) -> Path | None:
        """The folder of trained weights, beside the journal; None where that is in memory."""
        return None if self.space.path is None else Path(self.space.path).parent / "deltas"

    def run(self, tasks: TaskSet, verb: str, settings: Mapping[str, Any]) -> NeuronRun:
        """Begins the run of a verb on tasks; the settings identify it."""
        run = Run(
            self.model,
            tasks,
            self.space,
            settings={"verb": f"neurons {verb}", **settings},
            engine_options=self.engine_options,
            model_options=self.model_options,
            stages=self.stages,
        )
        return NeuronRun(run, self.neurons)


@contextmanager
def opened(
    model: str | GatedModel,
    on_progress: Report | None,
    *,
    model_options: ModelOptions,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
) -> Iterator[Opened]:
    """Opens a model whose components are its neurons.

    Raises:
        BrocaError: The model cannot be loaded, or it has no neurons that can be ablated.
    """
    options = replace(model_options, components="neurons")
    stages = Stages(on_progress)
    with (
        workspace(journal_options, executor_options) as space,
        model_in_use(model, options, stages) as gated,
    ):
        yield Opened(NeuronModel(gated), space, stages, engine_options, options)


def settings_of(*groups: Any, **parameters: Any) -> dict[str, Any]:
    """What identifies a run besides the weights and the items, as plain values.

    Args:
        groups: Option classes.
        parameters: Other parameters of the verb.
    """
    settings: dict[str, Any] = {
        name: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for name, value in parameters.items()
    }
    for group in groups:
        if isinstance(group, TaskOptions):
            settings["task_options"] = group.to_dict()
        else:
            settings |= asdict(group)
    return settings
