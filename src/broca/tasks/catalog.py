"""Finds tasks by name: examples, shipped tasks, a folder's tasks, and all tasks of lm-eval."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from broca.errors import BadInput, BrocaError, TaskUnusable, UnknownName, first_line, nearest
from broca.models.hub import skip_retries_if_unreachable
from broca.options import TaskOptions
from broca.tasks.benchmark import Benchmark
from broca.tasks.code import code_tasks, isolation_of, require_enclosed
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.examples import Task, names_file
from broca.tasks.groups import group_of
from broca.tasks.in_memory import harness_task, score_with
from broca.tasks.metrics import choose_metric
from broca.tasks.options import reference_function
from broca.tasks.paper import PAPER_GROUPS, paper_metric
from broca.tasks.prepared import require_locate_split
from broca.tasks.task_index import TaskIndex, members_of, with_members
from broca.tasks.taskfiles import BrokenFile, broken_files
from broca.tasks.tokenizing import RequestTokenizer

TaskOrigin = Literal["included", "shipped", "instruct", "lm-eval"]
"""Where a name is defined."""


def shipped_folder() -> Path:
    """The folder of the tasks that are part of the package."""
    return Path(str(files("broca") / "tasks" / "shipped"))


def instruct_folder() -> Path:
    """The folder of the tasks for chat models that are part of the package."""
    return Path(str(files("broca") / "tasks" / "instruct"))


class Catalog:
    """The tasks that runs can name; runs that share a catalog build each of them once.

    The names of lm-eval's own tasks are read from thousands of files, which takes about a second
    (`TaskIndex`); this is done only for a name that is neither shipped nor in `include_path`, once
    in a process, and never for examples.

    Args:
        include_path: A folder of lm-eval YAML tasks to add.
        allow_code: Whether tasks may execute what the model writes, under bubblewrap;
            `unsandboxed` for resource limits only.

    Raises:
        BadInput: The folder does not exist or holds no task.
    """

    def __init__(
        self,
        include_path: str | Path | None = None,
        *,
        allow_code: bool | Literal["unsandboxed"] = False,
    ) -> None:
        self._isolation = isolation_of(allow_code)
        self._definitions: dict[str, Task] = {}
        self._built: dict[tuple[Any, ...], tuple[RequestTokenizer, Benchmark]] = {}
        self._loaded: dict[str, tuple[list[Any], Any | None]] = {}
        self._include_path = Path(include_path).expanduser() if include_path else None
        if self._include_path is not None:
            if not self._include_path.is_dir():
                raise BadInput(f"`include_path` '{include_path}' is not a folder; check the path")
            if not self.included:
                if self._broken:
                    raise TaskUnusable(self._broken[0].message)
                raise BadInput(
                    f"`include_path` '{include_path}' holds no lm-eval task: no YAML file in it "
                    "names a 'task'"
                )

    @cached_property
    def _shipped_manager(self) -> Any:
        return _manager(shipped_folder())

    @cached_property
    def _instruct_manager(self) -> Any:
        return _manager(instruct_folder())

    @cached_property
    def _included_manager(self) -> Any:
        try:
            return _manager(self._include_path)
        except TaskUnusable as error:
            raise TaskUnusable(self._broken[0].message if self._broken else str(error)) from error

    @cached_property
    def shipped(self) -> tuple[str, ...]:
        """Names of the shipped tasks."""
        return tuple(self._shipped_manager.all_subtasks)

    @cached_property
    def instruct(self) -> tuple[str, ...]:
        """Names of the package's tasks for chat models, which no shipped model can do."""
        return tuple(self._instruct_manager.all_subtasks)

    @cached_property
    def included(self) -> tuple[str, ...]:
        """Names of the tasks in `include_path`."""
        if self._include_path is None:
            return ()
        return tuple(name for name in self._included_manager.all_subtasks if isinstance(name, str))

    @cached_property
    def included_groups(self) -> tuple[str, ...]:
        """Names of the groups and tags in `include_path`."""
        if self._include_path is None:
            return ()
        manager = self._included_manager
        return tuple(
            name for name in (*manager.all_groups, *manager.all_tags) if isinstance(name, str)
        )

    @cached_property
    def _broken(self) -> tuple[BrokenFile, ...]:
        return () if self._include_path is None else broken_files(self._include_path)

    @property
    def include_path(self) -> Path | None:
        """The folder of tasks that was added."""
        return self._include_path

    @property
    def built(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Every task that was built: its name, and lm-eval's objects."""
        return [(key[0], benchmark.harness_tasks) for key, (_, benchmark) in self._built.items()]

    def name_of(self, task: str | Task) -> str:
        """Returns the name of a task in this catalog and in results.

        From then on, the name means this task in every method, even if another task has the same
        name.

        Raises:
            BadInput: Another task of this name was given before, or `task` is neither a name nor a
                task.
        """
        if isinstance(task, str):
            return task
        if not isinstance(task, Task):
            raise BadInput(
                f"`task` must be a name or a broca.Task, not {type(task).__name__}; "
                "`Task.from_examples` takes examples"
            )
        if self._definitions.setdefault(task.name, task) is not task:
            raise BadInput(f"two tasks are called '{task.name}': give one of them another `name`")
        return task.name

    def names_of(self, tasks: str | Task | Iterable[str | Task]) -> list[str]:
        """Returns the names of several tasks: a list, one task, or a string joined by commas.

        Raises:
            BadInput: As in `name_of`.
        """
        if isinstance(tasks, str):
            tasks = tasks.split(",")
        elif isinstance(tasks, Task):
            tasks = [tasks]
        names = [self.name_of(task).strip() for task in tasks]
        return [name for name in names if name]

    def is_own(self, task: str | Task) -> bool:
        """Whether a task consists of the user's examples, which have no other tasks by default."""
        name = self.name_of(task)
        return names_file(name) or self._examples_are_elsewhere(name)

    def require_names(self, tasks: Iterable[str | Task]) -> None:
        """Refuses names that mean no task; only files of examples are loaded.

        Args:
            tasks: Names or tasks; the names of the paper's groups stand for their members.

        Raises:
            UnknownName: No task has one of the names.
            BadInput: A file of examples cannot be read.
        """
        for task in tasks:
            name = self.name_of(task)
            for member in PAPER_GROUPS.get(name, (name,)):
                if self._examples_are_elsewhere(member):
                    continue
                if names_file(member):
                    self._examples(member, TaskOptions())
                else:
                    self._origin(member)

    def require(self, task: str | Task, options: TaskOptions | None = None) -> None:
        """Refuses a misspelt task or task option, before anything slow is done.

        The data of the task are loaded, and the next `load` uses them.

        Args:
            task: The task that will be loaded.
            options: Options of the task, of which metric, split and reference are checked.

        Raises:
            BrocaError: No task has this name, it cannot be loaded, or it has no such metric or
                split; the reference names no function.
        """
        options = options or TaskOptions()
        self.require_names([task])
        reference_function(options)
        name = self.name_of(task)
        if self.is_own(name):
            return
        tasks, group = self._loaded[name] = self.harness_tasks(name)
        definition = self._definitions.get(name)
        metric = options.metric or (definition.metric if definition is not None else None)
        if isinstance(metric, str):
            if group is None and len(tasks) == 1:
                choose_metric(tasks[0], metric)
            else:
                group_of(name, group, tasks, metric=metric)
        if options.locate_split is not None:
            for member in tasks:
                require_locate_split(member, options.locate_split)

    def _examples_are_elsewhere(self, name: str) -> bool:
        """Whether a name means examples in memory or a data set."""
        definition = self._definitions.get(name)
        return name.startswith(PREFIX) or bool(definition and definition.examples)

    def load(
        self,
        task: str | Task,
        tokenizer: RequestTokenizer,
        *,
        metric: str | None = None,
        options: TaskOptions | None = None,
        require_split: bool = True,
    ) -> Benchmark:
        """Loads a task, a group or a tag and builds its items, once for equal arguments.

        Args:
            task: A name, the path of a JSON-lines file, `data:` and a data set, or a task.
            tokenizer: Tokenizer of requests for the model.
            metric: The metric to use; by default the metric of the given task, or of the paper for
                its tasks, else see `TaskOptions.metric`.
            options: Options of the task; by default those of its file.
            require_split: Whether a task without the locate split of the options is refused.

        Raises:
            UnknownName: No task has this name.
            BadInput: A chat template is requested and the tokenizer has none, or a file of examples
                cannot be read.
            TaskUnusable: Its data are missing, it has no items, or it cannot be scored.
        """
        name, options = self.name_of(task), options or TaskOptions()
        key = (name, metric, options, require_split, tokenizer.identity)
        if key not in self._built:
            benchmark = self._build(name, tokenizer, metric, options, require_split)
            self._built[key] = tokenizer, benchmark  # a kept tokenizer has a unique identity
        return self._built[key][1]

    def _build(
        self,
        name: str,
        tokenizer: RequestTokenizer,
        metric: str | None,
        options: TaskOptions,
        require_split: bool,
    ) -> Benchmark:
        definition = self._definitions.get(name)
        function = None
        if metric is None and definition is not None:
            if callable(definition.metric):
                function = definition.metric
            else:
                metric = definition.metric
        examples = self._examples(name, options)
        tasks: list[Any]
        group: Any = None
        if examples is not None:
            with refused(f"task '{name}' could not be loaded"):
                tasks = [harness_task(examples, tokenizer, chat=options.chat_template)]
            metric = metric or next(iter(tasks[0].aggregation()))
        else:
            early = name in self._loaded
            tasks, group = self._loaded.pop(name) if early else self.harness_tasks(name)
            if metric is None and function is None and name not in self.included:
                metric = paper_metric(name)
        if function is not None:
            for task in tasks:
                score_with(task, function)
            metric, group = None, None
        alone = group is None and len(tasks) == 1
        with refused(f"task '{name}' could not be prepared"):
            return Benchmark.build(
                tasks,
                tokenizer,
                metric=metric,
                options=options,
                group=None if alone else group_of(name, group, tasks, metric=metric),
                require_split=require_split,
            )

    def _examples(self, name: str, options: TaskOptions) -> Task | None:
        """Returns the task of examples that a name means; None for a task of a task file."""
        definition = self._definitions.get(name)
        if definition is not None and definition.examples:
            return definition
        if name.startswith(PREFIX):
            limit = options.limit or 0
            return read_data_set(name, limit=int(limit) if limit >= 1 else None)
        if names_file(name):
            settings = definition or Task(name)
            return Task.from_file(
                name,
                until=settings.until,
                max_new_tokens=settings.max_new_tokens,
                capability=settings.capability,
            )
        return None

    def harness_tasks(self, name: str) -> tuple[list[Any], Any | None]:
        """Loads lm-eval's objects: the tasks that a name means, and their group if any.

        Raises:
            UnknownName: No task has this name.
            TaskUnusable: The file or the data of one cannot be read.
        """
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        origin = self._origin(name)
        packaged = origin in ("shipped", "instruct")
        manager = self._manager_of(name, origin)
        if not packaged:
            skip_retries_if_unreachable()
        with refused(f"task '{name}' could not be loaded"):
            # shipped tasks execute no code, and the metric takes seconds to import
            enclosed = code_tasks(self._isolation, what=f"task '{name}'")
            with nullcontext() if packaged else enclosed:
                loaded = manager.load([name])
            tasks = list(loaded["tasks"].values())
            for task in tasks:
                require_enclosed(task, self._isolation)
            return tasks, loaded.get("groups", {}).get(name)

    def _origin(self, name: str) -> TaskOrigin:
        """Returns where the name of a task, a group or a tag is defined.

        Raises:
            UnknownName: No file defines the name.
            TaskUnusable: The file that defines it cannot be read.
        """
        if self._include_path is not None and name in self._included_manager.all_tasks:
            return "included"
        if name in self._shipped_manager.all_tasks:
            return "shipped"
        if name in self._instruct_manager.all_tasks:
            return "instruct"
        for broken in self._broken:
            if name in broken.names:
                raise TaskUnusable(broken.message)
        if name in harness_index():
            return "lm-eval"
        names = [
            *self.shipped,
            *self.instruct,
            *self.included,
            *self.included_groups,
            *harness_index().names,
        ]
        unread = f"; {self._broken[0].message}" if self._broken else ""
        raise UnknownName(
            f"task '{name}' is unknown{nearest(name, names)}; `broca tasks` lists the shipped "
            f"ones, `include_path` adds a folder of your own{unread}"
        )

    def _manager_of(self, name: str, origin: TaskOrigin) -> Any:
        """Returns the manager that knows a name and all tasks that it stands for."""
        if origin == "shipped":
            return self._shipped_manager
        if origin == "instruct":
            return self._instruct_manager
        if origin == "lm-eval":
            return _harness_manager(harness_index().folders_of([name]))
        outside = _outside_members(name, self._included_manager.task_index)
        if not outside:
            return self._included_manager
        # in lm-eval, the last folder that defines a name takes precedence
        return _manager(*harness_index().folders_of(outside), self._include_path)


def _manager(*folders: Path | None) -> Any:
    """Returns lm-eval's manager of the tasks in some folders; the last folder takes precedence."""
    from lm_eval.tasks import TaskManager

    named = [str(folder) for folder in folders if folder is not None]
    with refused(f"the tasks in '{', '.join(named)}' could not be listed"):
        return TaskManager(include_path=named, include_defaults=False)


@cache
def _harness_manager(folders: tuple[Path, ...]) -> Any:
    """Returns lm-eval's manager of some of its own tasks, cached for the process."""
    return _manager(*folders)


@cache
def harness_index() -> TaskIndex:
    """Returns the index of lm-eval's own tasks, without importing lm-eval."""
    spec = find_spec("lm_eval")
    assert spec is not None, "lm-eval is a dependency"
    assert spec.submodule_search_locations, "lm-eval is a package"
    return TaskIndex(Path(spec.submodule_search_locations[0]) / "tasks")


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turns any exception of a task's file, functions or data into one line.

    Args:
        what: Beginning of the message: what failed.

    Raises:
        TaskUnusable: An exception other than an error of broca was raised.
    """
    try:
        yield
    except BrocaError:
        raise
    except Exception as error:  # a task file may raise anything
        raise TaskUnusable(f"{what}: {_cause(error)}; {_advice(error)}") from error


def _outside_members(name: str, index: Any) -> list[str]:
    """Returns the members of a folder's task or group that the folder does not define."""

    def members(group: str) -> list[str]:
        listed = (index[group].cfg or {}).get("task") if group in index else None
        return members_of(listed) if isinstance(listed, list) else []

    return sorted(member for member in with_members([name], members) if member not in index)


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _advice(error: BaseException) -> str:
    text = str(error).lower()
    if "gated" in text or "authenticated" in text:
        return "accept its terms on the hub and log in with `hf auth login`"
    if isinstance(error, ConnectionError) or "offline" in text:
        return (
            "its data are on the hub and not in the local cache, and the network cannot be used: "
            "connect, or point dataset_path at a local copy"
        )
    if isinstance(error, FileNotFoundError):
        return "check the paths in its file"
    return "check its file, its data and the network"
