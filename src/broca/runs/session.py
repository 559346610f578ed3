"""Opens the model, the journal and the workers of a verb."""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import torch

from broca.components import components_in
from broca.engine import Ablation
from broca.errors import BadInput
from broca.known_paths import PACKAGED_MODELS, SHIPPED_MODELS, place_of
from broca.models import GatedModel, holds_model, load
from broca.options import (
    AblationOptions,
    ExecutorOptions,
    JournalOptions,
    ModelOptions,
    RunOptions,
    TaskOptions,
)
from broca.published import is_published, published_heads
from broca.results.base import ModelInfo
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.reading import read
from broca.results.verification import Verification
from broca.runs.progress import Stages
from broca.runs.run import DATE, Run
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace
from broca.store import read_runs
from broca.tasks import Task, says_date

IN_MEMORY = (
    "rows are kept in memory, so this run cannot be resumed; `journal` names a file to keep them in"
)
"""Warning of a run without a journal."""

Selected = Localization | Verification | NeuronSet
"""Results that selected components, and can stand for them and for their model."""


@contextmanager
def open_run(
    model: str | GatedModel,
    options: RunOptions,
    stages: Stages | None = None,
    *,
    task: str | Task | None = None,
    others: Iterable[str | Task | Iterable[str | Task]] = (),
    warns: bool = True,
) -> Iterator[Run]:
    """Opens a journal, workers and a model for one call of a verb, and closes what it opened.

    Misspelt names are refused before the model is loaded.

    Args:
        model: The model or its name.
        options: The options of the verb.
        stages: The stages of a verb that opens several models; by default new ones, which report to
            `on_progress` of the options.
        task: The task of the verb, which is loaded, and whose options are checked.
        others: Lists of more tasks that the verb will load; their names are looked up.
        warns: Whether a run that is kept in memory warns that it cannot be resumed.

    Raises:
        BrocaError: A task is unknown or has no such metric, the model cannot be loaded, or the
            journal or the executor cannot be used.
    """
    stages = stages or Stages(options.on_progress)
    with open_workspace(options.journal_options, options.executor_options, warns=warns) as space:
        catalog = space.catalog(options.source_options)
        names = [name for tasks in others for name in catalog.names_of(tasks)]
        catalog.require_names(name for name in names if name != "auto")
        if task is not None:
            stages.enter("looking up the task")
            catalog.require(task, options.task_options)
        if space.path is not None and Path(space.path).exists():
            _ = space.journal  # one that is in use is refused before the model is loaded
        with model_in_use(model, options.model_options, stages) as gated:
            if options.task_options.chat_template and says_date(gated.tokenizer):
                options = replace(options, task_options=_dated(options.task_options, space))
            yield Run(gated, TaskSet(), space, options, stages)


@contextmanager
def open_workspace(
    journal_options: JournalOptions, executor_options: ExecutorOptions, *, warns: bool = True
) -> Iterator[Workspace]:
    """A workspace for one call, or the caller's own, which stays open.

    Args:
        journal_options: Where rows are kept.
        executor_options: Where rows are measured.
        warns: Whether the logger `broca` warns, without a journal, that the run cannot be resumed.

    Raises:
        BadInput: The executor differs from that of the caller's workspace.
    """
    journal = journal_options.journal
    if isinstance(journal, Workspace):
        if executor_options not in (ExecutorOptions(), journal.executor):
            raise BadInput("`executor` belongs to the workspace that is given as `journal`")
        yield journal
        return
    with Workspace(
        journal, executor=executor_options, keep_outputs=journal_options.keep_outputs
    ) as opened:
        if warns and opened.path is None:
            logging.getLogger("broca").warning(IN_MEMORY)
        yield opened


@contextmanager
def model_in_use(
    model: str | GatedModel, options: ModelOptions, stages: Stages
) -> Iterator[GatedModel]:
    """Loads a model by its name, or uses a loaded one, whose state is restored afterwards.

    Raises:
        BadInput: Components of the model are ablated now.
    """
    if not isinstance(model, GatedModel):
        stages.enter(f"loading the model {model}")
        model = load(model, **options.keywords())
    with model.in_use(), torch.inference_mode(False):
        model.require_intact()  # from here on, no other thread can ablate any
        stages.enter(model.describe())
        yield model


def _dated(options: TaskOptions, space: Workspace) -> TaskOptions:
    """Returns options with a date for the chat template, so that prompts stay what they were.

    It is that of the journal's first run that has one: resumed on another day, a run goes on.
    """
    if options.chat_template_date is not None:
        return options
    runs = [] if space.path is None or not Path(space.path).exists() else read_runs(space.journal)
    days = (str(run.settings[DATE]) for run in runs if DATE in run.settings)
    return replace(options, chat_template_date=next(days, date.today().isoformat()))


def ablation_of(options: AblationOptions, seed: int) -> Ablation:
    """Returns the ablation that the options describe.

    Raises:
        BadInput: The kind is unknown, or the scale ablates nothing.
    """
    return Ablation(options.ablation, options.scale, seed)


def model_and_heads(
    model: Any, heads: Any
) -> tuple[str | GatedModel, str | tuple[str, ...], ModelInfo | None]:
    """Returns the model and the heads of a verb, and the model of the result that stands for it.

    Args:
        model: A model, its name, a result or its folder; these stand for their model.
        heads: As for `components_in`, or None for those that `model` selected.

    Raises:
        BadInput: No heads are named, or the result selected none or does not exist.
    """
    if heads is None:
        if isinstance(model, GatedModel):
            raise BadInput("no heads are named: give `heads` such as L0H4+L1H8")
        model = heads = model if isinstance(model, Selected) else selected_in(model)
    elif is_run(model):
        model = selected_in(model)
    if isinstance(heads, Selected) and not heads.selected:
        raise BadInput(f"the run on task '{heads.task}' selected nothing: name some in `heads`")
    names = heads if isinstance(heads, str) else tuple(one.name for one in components_in(heads))
    if isinstance(model, Selected):
        return model.model.name, names, model.model
    return str(model) if isinstance(model, Path) else model, names, None


def is_run(target: Any) -> bool:
    """Whether a target is the folder of a localization, and not the name of a model."""
    if not isinstance(target, str | Path) or str(target) in (*SHIPPED_MODELS, *PACKAGED_MODELS):
        return False
    return os.path.isfile(place_of(target) / Localization.FILE)  # False if the name is too long


def selected_in(path: str | Path) -> Selected:
    """Reads the result in the folder of a run.

    Raises:
        BadInput: The folder contains no result that names components.
    """
    place = place_of(path)
    if not place.exists() or holds_model(place):
        raise BadInput(
            f"'{path}' is not a folder of a run, and no components are named: give `heads` such as "
            "L0H4+L1H8"
        )
    result = read(place)
    if not isinstance(result, Selected):
        raise BadInput(
            f"{result.described()} names no set of components: give a localization, a verification "
            "or a neuron set, or name some in `heads`"
        )
    return result


def require_weights_of(measured: ModelInfo | None, model: GatedModel) -> None:
    """Refuses other weights than those of a run; in another number format they are not compared.

    Args:
        measured: The model of the run; None without a run.
        model: The model that stands for it.

    Raises:
        BadInput: The weights are others.
    """
    if measured is not None and measured.dtype in ("", model.dtype):
        model.require_measured(measured.fingerprint, of="the run", advice="name the model itself")


def require_names(heads: Any) -> str | tuple[str, ...]:
    """Refuses names that no component of any model has, before a model is loaded.

    Returns:
        The names one by one, or the name of a published list.

    Raises:
        BadInput: None is named, or a name cannot be read; see `components_in`.
        UnknownName: The published list does not exist.
    """
    if is_published(heads):
        return str(heads)
    names = tuple(component.name for component in components_in(heads))
    if not names:
        raise BadInput("no heads are named: give `heads` such as L0H4+L1H8")
    return names


def named_heads(model: GatedModel, heads: Any) -> tuple[str, ...]:
    """Returns the heads by the model's own names, in their order; looks up published lists."""
    heads = published_heads(require_names(heads), model)
    columns = model.components.columns(heads)
    if len(set(columns)) < len(columns):
        raise BadInput(f"a head is named twice in `heads` {heads}")
    return tuple(model.components.names[column] for column in columns)
