"""The first steps of the neuron verbs: open the model with its neurons, load tasks, begin a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from broca.models import GatedModel
from broca.neurons.items import neuron_tasks
from broca.neurons.neuron_model import NeuronModel
from broca.neurons.neuron_run import NeuronRun
from broca.options import DataOptions, RuleOptions, RunOptions, parts_of
from broca.runs.setup import Session, open_session
from broca.runs.task_sets import Part, TaskSet, other_tasks
from broca.tasks import Task


@dataclass(frozen=True, eq=False)
class Opened:
    """A model with its neurons, and its session.

    Attributes:
        neurons: The model.
        session: The session of the model, with the journal and the workers.
        rule: The rule by which neurons are selected.
        data: How data sets are read.
        settings: The options that identify the verb's run, besides weights and items.
    """

    neurons: NeuronModel
    session: Session
    rule: RuleOptions
    data: DataOptions
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def deltas(self) -> Path | None:
        """The folder of trained weights, beside the journal; None for a journal in memory."""
        journal = self.session.workspace.path
        return None if journal is None else Path(journal).parent / "deltas"

    def names(
        self, task: str | Task, others: str | Sequence[str | Task] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Returns the names of a task and of others, which become settings.

        Raises:
            BadInput: The task itself is named among the others.
        """
        catalog = self.session.catalog
        name = catalog.name_of(task)
        names = other_tasks(name, others, self.session.model, catalog)
        self.settings["task_options"] = self.session.options.task_options.to_dict()
        self.settings.update(
            {"task": name, "others": list(names)} if name else {"tasks": list(names)}
        )
        return name, names

    def run(self, verb: str, tasks: TaskSet | Mapping[Part, Sequence[str]]) -> NeuronRun:
        """Begins the run of a verb.

        Args:
            verb: Name of the verb.
            tasks: Tasks with their items; or, for each part, the names of the tasks that need it.
        """
        if not isinstance(tasks, TaskSet):
            self.session.stages.enter("building the tasks")
            tasks = neuron_tasks(
                self.session.model,
                tasks,
                self.session.catalog,
                report_items=self.settings.get("report_items", 0),
                task_options=self.session.options.task_options,
                data_options=self.data,
            )
        run = self.session.run(tasks, settings={"verb": f"neurons {verb}", **self.settings})
        return NeuronRun(run, self.neurons, self.rule, self.settings["seed"])


@contextmanager
def opened(
    model: str | GatedModel,
    run_options: RunOptions,
    *groups: Any,
    named: Sequence[str | Task | Sequence[str | Task]] = (),
    **settings: Any,
) -> Iterator[Opened]:
    """Opens a model whose components are its neurons.

    Args:
        model: The model or its name.
        run_options: The options of every verb that measures.
        groups: The other option classes of the verb, which also determine the result.
        named: The tasks that the verb will load, whose names are checked before the model is
            loaded.
        settings: Its other parameters that determine the result.

    Raises:
        BrocaError: The model cannot be loaded, or it has no neurons that can be ablated.
    """
    loading = replace(run_options.model_options, components="neurons")
    options = {type(part): part for group in groups for part in parts_of(group)}
    for part in options.values():
        settings |= asdict(part)
    run_options = replace(run_options, model_options=loading)
    with open_session(model, run_options, others=named) as under_way:
        yield Opened(
            NeuronModel(under_way.model),
            under_way,
            options[RuleOptions],
            options.get(DataOptions, DataOptions()),
            settings,
        )
