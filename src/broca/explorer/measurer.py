"""Measures for the live page, one job after another, with a run and its journal."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

import numpy as np

from broca.engine import Progress
from broca.errors import BadInput, BrocaError
from broca.measurement import Measurement, Plan
from broca.models import GatedModel
from broca.options import RunOptions
from broca.results.base import Interval
from broca.results.verification import TextChange, Verification
from broca.runs.run import Run
from broca.runs.session import open_run
from broca.runs.task_sets import TaskSet, auto_tasks
from broca.tasks import Task, Tasks
from broca.tasks.example_files import json_rows
from broca.verification import Scope
from broca.verification.statistics import paired_drop

ITEMS = 40
"""Number of items of a task's live score."""

SLOPE_ITEMS = 12
"""Number of items over which gradients are averaged."""

VERIFIED = 100
"""Maximum number of report items of each task in a verification of the page."""

WAITING = 16
"""Maximum number of jobs that wait."""

VERIFICATION_ROWS = 6000
"""Maximum number of rows of such a verification."""

MOST_TASKS = 60
"""Number of tasks from which on no file of examples is added."""

LONGEST_NAME, LONGEST_EXAMPLE = 200, 1500
"""Maximum number of characters of the name of such a file, and of each example: others wait while
one visitor's are measured."""

RANDOM_SETS = 12
"""Number of random sets of the same size that stand behind a score."""

RANDOM_ITEMS = 20
"""Maximum number of items on which they are measured."""

_LOCATE = 24
"""Number of items that are reserved for other uses than scores, such as gradients."""

T = TypeVar("T")

Verify = Callable[..., Verification]
"""The verb `verify`, which this package cannot import."""


@dataclass(frozen=True)
class Score:
    """A task's live score on some items.

    Attributes:
        task: The task.
        intact: The intact model's score.
        score: The score under the mask.
        drop: The drop, with its 95 % paired bootstrap interval.
        items: Number of items of both scores.
    """

    task: str
    intact: float
    score: float
    drop: Interval
    items: int


class Measurer:
    """Measures on its own thread and on a copy of the model's modules around its weights.

    Args:
        model: The copy, which nothing else runs.
        run_options: Options of tasks, measuring and the journal; the journal and the workers are
            opened and closed on the thread.
        verify: The verb.
        tasks: The tasks; if empty, those of `auto`.

    Raises:
        BrocaError: The journal, the workers or the tasks cannot be opened.
    """

    def __init__(
        self, model: GatedModel, run_options: RunOptions, *, verify: Verify, tasks: Tasks = ()
    ) -> None:
        self._model = model
        self._options = run_options
        self._given = tasks
        self._names: tuple[str, ...] = ()
        self._verify = verify
        self._jobs: Queue[tuple[str, Callable[[], Any], Future[Any]] | None] = Queue()
        self._added: dict[str, Task] = {}  # no controls of others' verdicts
        self._running = self._stage = ""
        self._lock, self._closed = threading.Lock(), False
        self._runs: dict[str, Run] = {}
        self._opening: Future[None] = Future()
        self._thread = threading.Thread(  # it opens what this call may open, and no more
            target=copy_context().run, args=(self._work,), name="broca measurer", daemon=True
        )
        self._thread.start()
        self._opening.result()

    @property
    def busy(self) -> tuple[str, int]:
        """The running job with its progress, empty for none, and the number of waiting jobs."""
        return self._running and f"{self._running}{self._stage}", self._jobs.qsize()

    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that can be measured."""
        return self._names

    def score(self, task: str, names: Sequence[str], scale: float = 0.0) -> Score:
        """Measures a task's score with some components scaled, and the intact score.

        Args:
            task: One of `tasks`.
            names: The components.
            scale: Their gate.

        Raises:
            BrocaError: The task or a component is unknown, or the task cannot be measured.
        """
        return self._do(f"scoring {task}", lambda: self._score(task, names, scale))

    def example(self, task: str) -> tuple[str, str]:
        """Returns the prompt and the right answer of a scored item.

        Raises:
            BrocaError: The task is unknown, or it cannot be built.
        """

        def first() -> tuple[str, str]:
            run = self._run(task)
            _, item = run.bank[int(run.tasks.places["report"][task][0])]
            return item.prompt, item.target

        return self._do(f"building {task}", first)

    def add(self, name: str, text: str) -> str:
        """Adds a task of examples, one JSON object a line; returns its name.

        Raises:
            BadInput: A line is no example or too long, or a task of the page or of a task file may
                have this name.
        """

        def added() -> str:
            if name in self._names:
                raise BadInput(f"a task '{name}' is on this page already: name the file otherwise")
            if len(self._names) >= MOST_TASKS:
                raise BadInput(f"the page has {len(self._names)} tasks and takes no more")
            lines = name.lower().endswith((".jsonl", ".ndjson", ".json"))
            if not lines or len(name) > LONGEST_NAME:
                raise BadInput(f"name the file NAME.jsonl, in at most {LONGEST_NAME} characters")
            rows = [row for _, row in json_rows(Path(name), text)]
            if max((len(str(row)) for row in rows), default=0) > LONGEST_EXAMPLE:
                raise BadInput(f"the page takes examples of at most {LONGEST_EXAMPLE} characters")
            task = Task.from_examples(rows, name=name)
            self._added[self._opened.catalog.name_of(task)] = task
            self._names = (*self._names, task.name)
            return task.name

        return self._do(f"reading {name}", added)

    def random_scores(self, task: str, names: Sequence[str], scale: float = 0.0) -> list[float]:
        """Measures a task's score under random sets with as many components of each kind.

        They are the same for every real set of these kinds.

        Args:
            task: One of `tasks`.
            names: The components of the real set.
            scale: The gate of the random sets.

        Raises:
            BrocaError: As in `score`.
        """

        def scores() -> list[float]:
            run, components = self._run(task), self._model.components
            trial = run.tasks.trial()
            places = {task: trial.places[task][:RANDOM_ITEMS]}
            kinds = np.array([component.kind for component in components])
            own = list(set(components.columns(names)))
            rng = np.random.default_rng([len(own), len(components)])
            masks = np.zeros((RANDOM_SETS, len(components)), dtype=bool)
            for mask in masks:
                for kind, size in sorted(Counter(kinds[own].tolist()).items()):
                    mask[rng.choice(np.flatnonzero(kinds == kind), size, replace=False)] = True
            measured = trial.responses(self._scaled(run, scale), masks, places)[task]
            return [trial.score(task, row) for row in measured]

        return self._do(f"random sets on {task}", scores) if names and scale != 1 else []

    def text(self, names: Sequence[str], scale: float = 0.0) -> TextChange:
        """Measures how the model's own text changes with some components scaled.

        Raises:
            BrocaError: A component is unknown.
        """

        def changed() -> TextChange:
            run = self._opened.on(TaskSet(), settings={"measures": "neutral text"})
            columns = [] if scale == 1 else self._model.components.columns(names)
            ablation = replace(run.ablation, scale=scale if columns else 0.0)
            return replace(run, ablation=ablation).text_change(columns)

        return self._do("reading neutral text", changed)

    def slopes(self, task: str, names: Sequence[str], scale: float = 0.0) -> dict[str, float]:
        """Measures the slopes of a task in the gates of components while some are scaled.

        A slope is minus the gradient of the answer's probability with respect to the component's
        gate: it is negative if the task gets worse when the gate closes a little.

        Raises:
            BrocaError: As in `score`, or no item of the task has a reference answer.
        """
        return self._do(f"following gradients on {task}", lambda: self._slopes(task, names, scale))

    def verify(self, task: str, names: Sequence[str], scale: float = 0.0) -> Verification:
        """Verifies a set of scaled components, like the selection of `broca localize`.

        Raises:
            BrocaError: As in the verb.
        """

        def verified() -> Verification:
            others = [name for name in self._names if name not in (task, *self._added)]
            scope = Scope(ablations=False).within(
                VERIFICATION_ROWS, members=len(names), tasks=1 + len(others)
            )
            within = self._asking(task, self._options).within(self._opened.workspace)
            return self._verify(
                self._model, self._added.get(task, task), list(names), others=others, scope=scope,
                limit=VERIFIED, scale=scale, run_options=replace(within, on_progress=self._hear),
            )  # fmt: skip

        return self._do(f"verifying on {task}", verified)

    def close(self) -> None:
        """Stops the thread after its current batch; jobs that run or wait are ended."""
        with self._lock:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _go_on(self, *_: object) -> None:
        """Ends the running job if the page is closing; it is called after every batch."""
        if self._closed:
            raise BrocaError("the page is closing")

    def _hear(self, stage: str, progress: Progress | None) -> None:
        """Keeps the progress of the running job, for `busy`."""
        self._go_on()
        rows = f", {progress.done:,} of {progress.total:,} rows" if progress else ""
        self._stage = f": {stage}{rows}"

    def _do(self, what: str, job: Callable[[], T]) -> T:
        if self._jobs.qsize() >= WAITING:
            raise BadInput("the page is busy with other measurements: ask again in a moment")
        done: Future[T] = Future()
        with self._lock:  # nothing is put behind the end of the queue
            self._go_on()
            self._jobs.put((what, job, done))
        return done.result()

    def _work(self) -> None:
        try:
            options = replace(self._options, on_progress=self._go_on)
            with open_run(self._model, options, others=[self._given], warns=False) as self._opened:
                catalog = self._opened.catalog
                names = catalog.names_of(self._given) or auto_tasks(self._model, catalog)
                self._names = tuple(dict.fromkeys(names))
                self._opening.set_result(None)
                while (entry := self._jobs.get()) is not None:
                    self._running, job, done = entry
                    try:
                        self._go_on()
                        done.set_result(job())
                    except Exception as error:  # noqa: BLE001  # the caller gets it
                        done.set_exception(error)
                    self._running = self._stage = ""
        except Exception as error:
            if self._opening.done():
                raise
            self._opening.set_exception(error)

    def _asking(self, task: str, options: RunOptions) -> RunOptions:
        """Returns the options for a task: a metric and a split are those of the first one.

        Raises:
            BadInput: The task is not on the page, whose requests name no other.
        """
        if task not in self._names:
            raise BadInput(f"task '{task}' is not on this page: it has {', '.join(self._names)}")
        if task == self._names[0]:
            return options
        asked = replace(options.task_options, metric=None, locate_split=None)
        return replace(options, task_options=asked)

    def _run(self, task: str) -> Run:
        """Returns the run of a task, made once."""
        if task not in self._runs:
            opened = replace(self._opened, options=self._asking(task, self._opened.options))
            claimed = self._added.get(task, task)  # a visitor's name is no path
            tasks = opened.claimed(
                claimed, others=(), items=_LOCATE, seed=0, limit=ITEMS, searched="task"
            )
            settings = {"measures": task, "verb": "explore", "components": self._model.kinds}
            self._runs[task] = opened.on(tasks, settings=settings)
        return self._runs[task]

    def _score(self, task: str, names: Sequence[str], scale: float) -> Score:
        run = self._run(task)
        trial = run.tasks.trial()
        places = {task: trial.places[task]}
        columns = [] if scale == 1 else self._model.components.columns(names)
        before = trial.responses(run.measure, run.mask(())[None], places)[task][0]
        scaled = self._scaled(run, scale if columns else 0.0)
        after = trial.responses(scaled, run.mask(columns)[None], places)[task][0]
        drop, _, _ = paired_drop(before, after, aggregate=trial.aggregation(task, before))
        return Score(task, trial.score(task, before), trial.score(task, after), drop, len(before))

    def _scaled(self, run: Run, scale: float) -> Callable[[Plan], Measurement]:
        """Returns how a run measures masks whose components are scaled."""
        return lambda plan: run.measure(replace(plan, scale=scale or None))

    def _slopes(self, task: str, names: Sequence[str], scale: float) -> dict[str, float]:
        run = self._run(task)
        places = {task: run.tasks.places["locate"][task]}
        usable = run.referenced("probability", places, otherwise=None)  # measured once
        items = usable.places[task][:SLOPE_ITEMS]
        columns = [] if scale == 1 else self._model.components.columns(names)
        plan = Plan(
            run.mask(columns)[None], np.zeros(len(items), dtype=np.intp), items, gradients=True,
            response="probability", scale=(scale or None) if columns else None,
        )  # fmt: skip
        slopes = run.measure(plan, role="search").slopes().mean(0)
        return {
            name: -float(slope)
            for name, slope in zip(self._model.components.names, slopes, strict=True)
        }
