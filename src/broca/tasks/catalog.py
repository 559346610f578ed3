"""Finds tasks by name: examples, shipped tasks, a folder's tasks, and all tasks of lm-eval."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lm_eval.tasks import TaskManager

from broca.errors import BadInput, TaskUnusable, UnknownName, nearest, refused
from broca.known_paths import place_of, require_named
from broca.models.checkpoints import skip_retries_if_unreachable
from broca.options import TaskOptions
from broca.results.tasks import PaperTask
from broca.tasks import task_index
from broca.tasks.benchmark import Benchmark, reference_of
from broca.tasks.code import code_tasks
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.example_files import names_file
from broca.tasks.examples import Task, harness_task
from broca.tasks.metrics import MetricFunction, score_with, scored_group
from broca.tasks.preparation import as_in_harness, require_locate_split
from broca.tasks.sandbox import fetching
from broca.tasks.tokenizer import RequestTokenizer

_TABLE = (
    PaperTask("gsm8k", "exact_match,flexible-extract", "math", "openai/gsm8k"),
    PaperTask("arithmetic", "acc", "math", "EleutherAI/arithmetic"),
    PaperTask("mbpp", "pass_at_1", "code", "google-research-datasets/mbpp", executes_code=True),
    PaperTask(
        "humaneval_instruct", "pass@1", "code", "openai/openai_humaneval", executes_code=True
    ),
    PaperTask("hellaswag", "acc_norm", "general", "Rowan/hellaswag"),
    PaperTask("boolq", "acc", "general", "aps/super_glue"),
    PaperTask("arc_challenge", "acc_norm", "general", "allenai/ai2_arc"),
    PaperTask("mmlu", "acc", "general", "cais/mmlu"),
    PaperTask("wmdp_bio", "acc", "hazardous knowledge", "cais/wmdp"),
    PaperTask("wmdp_chem", "acc", "hazardous knowledge", "cais/wmdp"),
    PaperTask("wmdp_cyber", "acc", "hazardous knowledge", "cais/wmdp"),
)

PAPER_TASKS: Mapping[str, PaperTask] = MappingProxyType({task.name: task for task in _TABLE})
"""The tasks of the compressed-sensing paper by name (Bair, Xu, Sun and Kolter, arXiv 2603.03335).
All are tasks of lm-eval, with its number of examples; the paper's metric is the default."""

PAPER_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"general": ("hellaswag", "boolq", "arc_challenge", "mmlu")}
)
"""Groups that the paper scores by the mean over their members, each in its own metric."""


_SENTENCES = 20
"""Number of sentences of neutral text on which a model's own text is measured; searches have the
others."""


def shipped_folder() -> Path:
    """The folder of the tasks that are part of the package."""
    return Path(str(files("broca") / "tasks" / "shipped"))


@cache
def _controls() -> Mapping[str, Task]:
    """The shipped examples by name, which serve as other tasks where one gives own examples."""
    folder = shipped_folder() / "data" / "controls"
    return {
        name: Task.from_examples(folder / f"{name}.jsonl", name=name, metric=metric)
        for name, metric in (("neutral_text", "acc"), ("short_questions", "contains"))
    }


def neutral_text() -> tuple[str, ...]:
    """Returns a few hundred tokens of neutral English, sentence by sentence."""
    return _sentences()[:_SENTENCES]


@cache
def searched_text() -> Task:
    """Other sentences as a task, whose margin is their mean log-probability in nats per token."""
    cut = [sentence.partition(" ") for sentence in _sentences()[_SENTENCES:]]
    examples = [{"prompt": word, "choices": [f" {rest}"], "label": 0} for word, _, rest in cut]
    return replace(_controls()["neutral_text"], name="neutral text", examples=tuple(examples))


def _sentences() -> tuple[str, ...]:
    examples = _controls()["neutral_text"].examples
    return tuple(f"{line['prompt']}{line['choices'][line['label']]}" for line in examples)


def listed(names: Any) -> list[Any]:
    """Names and objects from a list, one object, or names that one string joins by commas."""
    if isinstance(names, str):
        names = names.split(",")
    elif not isinstance(names, Iterable):
        names = [names]
    stripped = [name.strip() if isinstance(name, str) else name for name in names]
    return [name for name in stripped if name != ""]


class Catalog:
    """The tasks that runs can name; runs that share a catalog build each of them once.

    The names of lm-eval's own tasks are read from thousands of files, which takes about a second;
    this is done only for a name that is neither shipped nor in `include_path`, once in a process,
    and never for examples.

    Args:
        include_path: A folder of lm-eval YAML tasks to add.
        allow_code: Whether tasks may execute what the model writes, under bubblewrap.
        fetch_urls: Whether tasks may fetch data from addresses that their files name.

    Raises:
        BadInput: The folder does not exist.
        TaskUnusable: The folder holds no task, or none that can be read.
    """

    def __init__(
        self,
        include_path: str | Path | None = None,
        *,
        allow_code: bool = False,
        fetch_urls: bool = False,
    ) -> None:
        self._allow_code, self._fetch_urls = allow_code, fetch_urls
        self._definitions = dict(_controls())
        self._built: dict[tuple[Any, ...], tuple[RequestTokenizer, Benchmark]] = {}
        self._loaded: dict[str, Any] = {}
        self._included: dict[str, Any] = {}
        self._files: dict[str, Any] = {}
        self._broken: dict[str, str] = {}
        if include_path:
            folder = place_of(include_path)
            if not folder.is_dir():
                raise BadInput(f"`include_path` '{include_path}' is not a folder; check the path")
            self._included, self._broken = task_index.read_task_files(folder.rglob("*.yaml"))
            if not (self.included or self.included_groups):
                nothing = f"`include_path` '{include_path}' holds no lm-eval task in a YAML file"
                raise TaskUnusable(next(iter(self._broken.values()), nothing))

    @property
    def shipped(self) -> tuple[str, ...]:
        """Names of the shipped tasks that shipped models can do."""
        return tuple(sorted(_packaged()["broca_shipped"].tags))

    @property
    def instruct(self) -> tuple[str, ...]:
        """Names of the package's tasks for chat models, which no shipped model can do."""
        return tuple(sorted(_packaged()["broca_instruct"].tags))

    def controls(self, *, chat: bool) -> tuple[str, ...]:
        """Names of the other tasks of one's own examples; with a chat template also questions."""
        return tuple(_controls())[: 2 if chat else 1]

    @property
    def included(self) -> tuple[str, ...]:
        """Names of the tasks in `include_path`."""
        return _names(self._included, "TASK", "PY_TASK")

    @property
    def included_groups(self) -> tuple[str, ...]:
        """Names of the groups and tags in `include_path`."""
        return (*_names(self._included, "GROUP"), *_names(self._included, "TAG"))

    def wordings_of(self, task: str) -> tuple[str, ...]:
        """Names of the package's tasks that ask the documents of a shipped task in other words."""
        return tuple(name for end in ("line", "again") if (name := f"{task}_{end}") in _packaged())

    def name_of(self, task: str | Task) -> str:
        """Returns the name of a task in this catalog and in results.

        From then on, the name means this task in every method, even if another task has the same
        name.

        Args:
            task: A task, its name, or the path of its YAML file.

        Raises:
            BadInput: Another task of this name was given before, or `task` is neither a name nor a
                task.
            TaskUnusable: The file does not define a task.
        """
        if isinstance(task, str) and task in self._definitions:
            return task
        if isinstance(task, str) and task.strip().endswith((".yaml", ".yml")):
            require_named(task.strip(), exactly=True)  # its functions are run
            entries, broken = task_index.read_task_files([place := place_of(task.strip())])
            names = _names(entries, "TASK", "PY_TASK")
            if len(names) != 1:
                fault = next(iter(broken.values()), f"'{task}' does not define one task of lm-eval")
                raise TaskUnusable(fault)
            (name,) = names
            known = self._files.setdefault(name, entries[name])
            taken = name in self._definitions or names_file(name)
            if taken or known.yaml_path.resolve() != place.resolve():
                raise BadInput(f"two tasks are called '{name}': give that of '{task}' another name")
            return name
        if isinstance(task, str):
            return task
        if not isinstance(task, Task):
            raise BadInput(f"`task` must be a name or a broca.Task, not {type(task).__name__}")
        if self._definitions.setdefault(task.name, task) is not task:
            raise BadInput(f"two tasks are called '{task.name}': give one of them another `name`")
        return task.name

    def names_of(self, tasks: str | Task | Iterable[str | Task]) -> list[str]:
        """Returns the names of several tasks: a list, one task, or a string joined by commas.

        Raises:
            BadInput: As in `name_of`.
        """
        return [self.name_of(task) for task in listed(tasks)]

    def is_own(self, task: str | Task) -> bool:
        """Whether a task consists of the user's examples, which have no other tasks by default."""
        name = self.name_of(task)
        given = name in self._definitions and bool(self._definitions[name].examples)
        return given or name.startswith(PREFIX) or names_file(name)

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
                if names_file(member):
                    self._examples(member, TaskOptions())
                elif not self.is_own(member):
                    self._require_entry(member)

    @as_in_harness()
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
        reference_of(options)
        name = self.name_of(task)
        if self.is_own(name):
            return
        tasks, group = self._loaded[name] = self.harness_tasks(name)
        metric = options.metric or self._definition(name).metric
        with refused(f"task '{name}' could not be prepared"):
            if not callable(metric):
                scored_group(name, group, tasks, metric=metric)
            if options.locate_split is not None:
                for member in tasks:
                    require_locate_split(member, options.locate_split)

    @as_in_harness()
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
        if key in self._built:
            return self._built[key][1]
        chosen: str | MetricFunction | None = metric or self._definition(name).metric
        examples, group = self._examples(name, options), None
        if examples is not None:
            with refused(f"task '{name}' could not be loaded"):
                tasks = [harness_task(examples, tokenizer, chat=options.chat_template)]
            chosen = chosen or next(iter(tasks[0].aggregation()))
        else:
            tasks, group = self._loaded.pop(name, None) or self.harness_tasks(name)
            if chosen is None and name in PAPER_TASKS.keys() - self._included - self._files.keys():
                chosen = PAPER_TASKS[name].metric
        if callable(chosen):
            for harness in tasks:
                score_with(harness, chosen)
            chosen, group = None, None
        with refused(f"task '{name}' could not be prepared"):
            benchmark = Benchmark.build(
                tasks, tokenizer, name=None if group is None and len(tasks) == 1 else name,
                group=group, metric=chosen, options=options, require_split=require_split,
            )  # fmt: skip
        self._built[key] = tokenizer, benchmark  # a kept tokenizer has a unique identity
        return benchmark

    def _definition(self, name: str) -> Task:
        return self._definitions.get(name) or Task(name)

    def _examples(self, name: str, options: TaskOptions) -> Task | None:
        """Returns the task of examples that a name means; None for a task of a task file."""
        definition = self._definition(name)
        if definition.examples:
            return definition
        if name.startswith(PREFIX):
            limit = options.limit or 0
            rows = int(limit) if limit >= 1 else None
            return read_data_set(name, limit=rows, fetch_urls=self._fetch_urls)
        if not names_file(name):
            return None
        require_named(name)
        return Task.from_examples(name)

    @as_in_harness()
    def harness_tasks(self, name: str) -> tuple[list[Any], Any | None]:
        """Loads lm-eval's objects: the tasks that a name means, and their group if any.

        Raises:
            UnknownName: No task has this name.
            TaskUnusable: The file or the data of one cannot be read, a group has no tasks, or one
                shows images or plays sounds.
        """
        self._require_entry(name)
        if name not in _packaged():
            skip_retries_if_unreachable()
        manager = TaskManager(include_defaults=False)
        manager._index = task_index.TaskEntries(self._entry)
        what = f"task '{name}'"
        with (
            refused(f"{what} could not be loaded"),
            code_tasks(self._allow_code, what=what),
            fetching(self._fetch_urls, what),
        ):
            loaded = manager.load([name])
            tasks = list(loaded["tasks"].values())
            if not tasks:
                raise TaskUnusable(f"{what} has no tasks: list some in the file of the group")
            if any(getattr(task, "MULTIMODAL", False) for task in tasks):
                raise TaskUnusable(
                    f"{what} shows images or plays sounds, and broca gives models text alone: "
                    "choose a task of text"
                )
            return tasks, loaded.get("groups", {}).get(name)

    def _entry(self, name: str) -> Any:
        """Returns lm-eval's entry of a task, group or tag; None if there is none of this name."""
        return (
            self._files.get(name)
            or self._included.get(name)
            or _packaged().get(name)
            or task_index.harness_entry(name)
        )

    def _require_entry(self, name: str, *above: str) -> None:
        """Refuses a name that means no task, group or tag, or a group with such a member.

        Raises:
            UnknownName: No file defines the name.
            TaskUnusable: The file that defines it cannot be read.
        """
        own = name in self._files or name in self._included or name in _packaged()
        for text, message in self._broken.items():
            if not own and task_index.may_define(text, name):
                raise TaskUnusable(message)
        if (entry := self._entry(name)) is None:
            known = [*_packaged(), *self._included, *task_index.harness_names()]
            unread = "".join(f"; {message}" for message in self._broken.values())
            raise UnknownName(
                f"task '{name}' is unknown{nearest(name, known)}; `broca tasks` lists the shipped "
                f"ones, `include_path` adds a folder of your own{unread}"
            )
        for member in found if isinstance(found := (entry.cfg or {}).get("task"), list) else ():
            if isinstance(member, str) and member not in (name, *above):
                self._require_entry(member, name, *above)


@cache
def _packaged() -> dict[str, Any]:
    """Returns the entries of the tasks that are part of the package."""
    return task_index.read_task_files(shipped_folder().rglob("*.yaml"))[0]


def _names(entries: Mapping[str, Any], *kinds: str) -> tuple[str, ...]:
    """Returns the names of lm-eval's entries of some kinds, in alphabetical order."""
    return tuple(sorted(name for name, entry in entries.items() if entry.kind.name in kinds))
