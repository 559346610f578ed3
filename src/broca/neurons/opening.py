"""What the neuron verbs do first: open the model with its neurons, load tasks, begin a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from broca.models import GatedModel
from broca.neurons.items import neuron_tasks
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import NeuronRun
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    MethodOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
    TaskOptions,
    TrainingOptions,
)
from broca.runs.progress import Report, Stages
from broca.runs.run import Run
from broca.runs.setup import model_in_use, workspace
from broca.runs.task_sets import Part, TaskSet, other_tasks
from broca.runs.workspace import Workspace
from broca.tasks import Task

_RECORDED = (RuleOptions, MethodOptions, DataOptions, TrainingOptions)


@dataclass(frozen=True, eq=False)
class Opened:
    """A model with its neurons, and where it is measured.

    Attributes:
        neurons: The model.
        space: The journal and the workers.
        stages: Receives what is going on.
        options: The option classes that the verb was given.
        settings: What identifies the verb's run besides the weights and the items.
    """

    neurons: NeuronModel
    space: Workspace
    stages: Stages
    options: Mapping[type[Any], Any]
    settings: dict[str, Any]

    @property
    def deltas(self) -> Path | None:
        """The folder of trained weights, beside the journal; None where that is in memory."""
        return None if self.space.path is None else Path(self.space.path).parent / "deltas"

    def names(
        self, task: str | Task, others: str | Sequence[str | Task] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """The names of a task and of others, which become settings; `auto` as in `localize`.

        Raises:
            BadInput: The task itself is named among the others.
        """
        catalog = self.space.catalog(self.options[SourceOptions])
        name = catalog.name_of(task)
        names = other_tasks(name, others, self.neurons.model, catalog)
        self.settings.update(
            {"task": name, "others": list(names)} if name else {"tasks": list(names)}
        )
        return name, names

    def run(self, verb: str, tasks: TaskSet | Mapping[Part, Sequence[str]]) -> NeuronRun:
        """Begins the run of a verb.

        Args:
            verb: Its name.
            tasks: Tasks with their items; or the names of those of which each part is needed.
        """
        if not isinstance(tasks, TaskSet):
            self.stages.enter("building the tasks")
            tasks = neuron_tasks(
                self.neurons.model,
                tasks,
                self.space.catalog(self.options[SourceOptions]),
                items=self.settings["items"],
                report_items=self.settings.get("report_items", 0),
                seed=self.settings["seed"],
                task_options=self.options[TaskOptions],
                data_options=self.options[DataOptions],
            )
        run = Run(
            self.neurons.model,
            tasks,
            self.space,
            settings={"verb": f"neurons {verb}", **self.settings},
            engine_options=self.options[EngineOptions],
            model_options=self.options[ModelOptions],
            stages=self.stages,
        )
        return NeuronRun(run, self.neurons, self.options[RuleOptions], self.settings["seed"])


@contextmanager
def opened(
    model: str | GatedModel, on_progress: Report | None, *groups: Any, **settings: Any
) -> Iterator[Opened]:
    """Opens a model whose components are its neurons.

    Args:
        model: The model or its name.
        on_progress: Receives what is going on.
        groups: The option classes of the verb.
        settings: Its other parameters that decide the result.

    Raises:
        BrocaError: The model cannot be loaded, or it has no neurons that can be ablated.
    """
    options = {type(group): group for group in groups}
    options[ModelOptions] = replace(options[ModelOptions], components="neurons")
    for group in _RECORDED:
        settings |= asdict(options[group]) if group in options else {}
    if TaskOptions in options:
        settings["task_options"] = options[TaskOptions].to_dict()
    stages = Stages(on_progress)
    with (
        workspace(options[JournalOptions], options[ExecutorOptions]) as space,
        model_in_use(model, options[ModelOptions], stages) as gated,
    ):
        yield Opened(NeuronModel(gated), space, stages, options, settings)
