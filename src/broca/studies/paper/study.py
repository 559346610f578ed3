"""A model with its tasks, the head lists so far and the scores without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from broca import atlas, localize
from broca.errors import BadInput, NothingToLocalize
from broca.models import SHIPPED_MODELS
from broca.options import SearchOptions
from broca.published import model_like
from broca.runs import Report, Session, claim_tasks, load_tasks, other_tasks
from broca.searches import FEWEST_ROWS, METHODS
from broca.studies.paper import published_figures
from broca.studies.paper.reproduction import Row
from broca.tasks import PAPER_GROUPS, PAPER_TASKS, Task
from broca.verification import Examiner, Scope, TaskDrop

PAPER = (*PAPER_TASKS, "rhyme", "profanity")
"""The paper's tasks, which `auto` stands for on models that are not shipped."""

KNOWLEDGE = ("mmlu", "wmdp_bio", "wmdp_chem", "wmdp_cyber")
"""The paper's multiple-choice knowledge tasks; on other tasks, those of capability `knowledge`."""

_MEASURED_ONLY = (*PAPER_GROUPS["general"], "humaneval_instruct")
"""Tasks that the paper measures but does not localize."""

LONGEST = 10
"""Maximum number of heads of an order."""

ATLAS = "atlas: which heads every task needs"
"""The stage of the atlas."""


@dataclass(frozen=True)
class StudySettings:
    """The settings of all tables and figures, described in `reproduce`.

    Attributes:
        tasks: Tasks to measure: a list, names joined by commas, or `auto`.
        limit: Maximum number of report items of each task.
        keep_universal: Whether lists keep universal heads.
        seed: Seed of all random draws.
        search: Method, rows, items and k of every search.
    """

    tasks: str | Sequence[str | Task] = "auto"
    limit: int | None = None
    keep_universal: bool = False
    seed: int = 0
    search: SearchOptions = field(default_factory=lambda: SearchOptions(method=PAPER_METHOD))

    @property
    def method(self) -> str:
        """The search method of every list of heads."""
        return self.search.method or PAPER_METHOD


PAPER_METHOD = "cs-stratified"
"""The method of the paper's lists."""


@dataclass(frozen=True)
class HeadList:
    """The heads that a search selects for a task.

    Attributes:
        heads: At most k heads, most harmful first.
        order: The first ten heads whose ablation harms the task.
        universal: Heads that are in neither because all tasks need them.
        rows: Number of rows of the search.
    """

    heads: tuple[str, ...]
    order: tuple[str, ...]
    universal: tuple[str, ...]
    rows: int


class Source(Protocol):
    """The source of a study's figures: measurements, or a rehearsal that counts them."""

    def universal(self, study: Study) -> tuple[str, ...]:
        """Returns the universal heads by an atlas of the tasks."""

    def search(self, study: Study, task: str, method: str) -> HeadList:
        """Returns the heads that a method selects for a task, without universal heads."""

    def drops(self, heads: Sequence[str], tasks: Sequence[str]) -> dict[str, TaskDrop]:
        """Returns the drops of tasks without some heads."""


class Study:
    """A model and its tasks.

    Args:
        session: The session of the model, with heads as components.
        settings: The settings of all tables.

    Raises:
        BrocaError: A task is unknown or cannot be used, or the model can do none.
    """

    def __init__(self, session: Session, settings: StudySettings) -> None:
        self.model = model = session.model
        self.settings, self._session = settings, session
        self.notes: list[str] = []
        self.published = model_like(
            layers=model.structure.layers, heads=model.heads, name=model.name
        )
        self._lists: dict[tuple[str, str], HeadList] = {}
        names = self._names()
        session.stages.enter(f"building {len(names)} tasks")
        self.benchmarks = load_tasks(model, names, session.catalog)
        self.run = session.run(
            claim_tasks(
                names[0], self.benchmarks, items=settings.search.items, seed=settings.seed,
                limit=settings.limit, searched="task",
            ),
            settings={"study": "paper", "tasks": list(names), "seed": settings.seed},
        )  # fmt: skip
        examiner = self.run.examiner(Scope(seed=settings.seed, resamples=500))
        self._source: Source = _Measured(session, examiner)
        self.tasks = self._usable(names)
        localizable = [name for name in self.tasks if name not in _MEASURED_ONLY]
        self.localized = tuple(localizable) or self.tasks

    def _names(self) -> tuple[str, ...]:
        settings, source = self.settings, self._session.options.source_options
        shipped = self.model.source in SHIPPED_MODELS
        if settings.tasks == "auto" and not shipped and source.include_path is None:
            if source.allow_code:
                return PAPER
            coded = [name for name, task in PAPER_TASKS.items() if task.executes_code]
            self.notes.append(f"{' and '.join(coded)} execute code: they need `allow_code`")
            return tuple(name for name in PAPER if name not in coded)
        names = other_tasks("", settings.tasks, self.model, self._session.catalog)
        if not names:
            raise BadInput("`tasks` names none: give T1,T2")
        return names

    def _usable(self, names: Sequence[str]) -> tuple[str, ...]:
        """Returns the tasks that the intact model can do; other tasks can lose nothing."""
        self._session.stages.enter("scoring the intact model")
        usable = []
        self.intact = self._source.drops([], names)
        for drop in self.intact.values():
            if self.benchmarks[drop.task].at_chance(drop.before, items=drop.items):
                self.notes.append(
                    f"{self.model.name} scores {drop.before:.3f} on {drop.task}, no better than "
                    "guessing: left out"
                )
            else:
                usable.append(drop.task)
        if not usable:
            raise NothingToLocalize(
                f"{self.model.name} can do none of the {len(names)} tasks: choose tasks that it "
                "can do"
            )
        return tuple(usable)

    def skill(self, task: str) -> str:
        """Returns the skill of a task, by the paper or by its metadata."""
        if task in PAPER_TASKS:
            return PAPER_TASKS[task].skill
        return self.benchmarks[task].capability

    def same_skill(self, task: str) -> tuple[str, ...]:
        """Returns the other tasks of the task's skill."""
        return tuple(
            name for name in self.tasks if name != task and self.skill(name) == self.skill(task)
        )

    def general(self, task: str) -> tuple[str, ...]:
        """Returns the tasks whose mean is the general score for a task.

        They are the paper's general tasks if these are measured (without mmlu for other knowledge
        tasks), else all tasks of other skills.
        """
        others = [name for name in self.tasks if self.skill(name) != self.skill(task)]
        paper = [name for name in others if name in PAPER_GROUPS["general"]]
        if task in KNOWLEDGE:
            paper = [name for name in paper if name not in KNOWLEDGE]
        return tuple(paper or others)

    @property
    def knowledge(self) -> tuple[str, ...]:
        """Returns the multiple-choice knowledge tasks."""
        return tuple(
            name for name in self.tasks if name in KNOWLEDGE or self.skill(name) == "knowledge"
        )

    def rehearsed(self, source: Source) -> Study:
        """Returns a copy of the study with another source, with only the intact scores."""
        study = copy(self)
        study._source, study._lists, study.notes = source, {}, []
        return study

    @cached_property
    def universal(self) -> tuple[str, ...]:
        """The heads that an atlas of the tasks calls universal, and those that were published.

        They hurt tasks of more than half of the skills; heads that only one skill needs are not
        universal.
        """
        published = published_figures.universal(self.published)
        if len({self.skill(task) for task in self.tasks}) < 2:
            return published
        return tuple(dict.fromkeys((*self._source.universal(self), *published)))

    def list_of(self, task: str, method: str | None = None) -> HeadList:
        """Returns the heads that a method selects for a task, without universal heads."""
        method = method or self.settings.method
        if (task, method) not in self._lists:
            self._lists[task, method] = self._source.search(self, task, method)
        return self._lists[task, method]

    def drops(self, heads: Sequence[str], tasks: Iterable[str]) -> dict[str, TaskDrop]:
        """Returns the drops of tasks without some heads; no row is measured twice."""
        names = list(tasks)
        return self._source.drops(heads, names) if names else {}

    def scores(self, task: str, heads: Sequence[str]) -> Row:
        """Returns task and general score, intact and without some heads."""
        general = self.general(task)
        drops = self.drops(heads, [task, *general])
        lost = drops.pop(task)
        low, high = lost.ci or (None, None)
        row: Row = {
            "intact": lost.before, "ablated": lost.after, "drop": lost.drop,
            "drop_low": low, "drop_high": high, "p": lost.p,
        }  # fmt: skip
        if drops:
            row["general_intact"] = mean(drop.before for drop in drops.values())
            row["general_ablated"] = mean(drop.after for drop in drops.values())
            row["general_drop"] = mean(drop.drop for drop in drops.values())
        return row


@dataclass(frozen=True, eq=False)
class _Measured:
    """A source that measures the model.

    Attributes:
        session: The session of the model.
        examiner: Measures the drops of tasks.
    """

    session: Session
    examiner: Examiner

    def universal(self, study: Study) -> tuple[str, ...]:
        """Runs an atlas; see `Source`."""
        skills = {study.skill(task) for task in study.tasks}
        search = study.settings.search
        with self._verb(ATLAS) as report:
            result = atlas(
                study.model,
                study.tasks,
                seed=study.settings.seed,
                search_options=replace(search, rows=atlas_rows(study)),
                run_options=self.session.options,
                on_progress=report,
            )
        return tuple(
            universal.name
            for universal in result.universal
            if 2 * len({study.skill(task) for task in universal.hurts}) > len(skills)
        )

    def search(self, study: Study, task: str, method: str) -> HeadList:
        """Runs a localization; see `Source`."""
        # a method that measures other tasks excludes universal components itself
        weighs = METHODS[method].measures_others
        left_out = () if study.settings.keep_universal or weighs else study.universal
        search = replace(study.settings.search, method=method)
        with self._verb(search_stage(task, method)) as report:
            result = localize(
                study.model, task, others=study.general(task) if weighs else (),
                same_skill=study.same_skill(task) if weighs else (), verify=False,
                seed=study.settings.seed, search_options=search,
                run_options=self.session.options, on_progress=report,
            )  # fmt: skip
        harmful = [line.name for line in result.ranking if line.effect < 0]
        listed = result.selected if weighs else harmful
        return HeadList(
            heads=tuple(name for name in listed if name not in left_out)[: search.k],
            order=tuple(name for name in harmful if name not in left_out)[:LONGEST],
            universal=tuple(name for name in listed[: search.k] if name in left_out),
            rows=result.cost.rows,
        )

    def drops(self, heads: Sequence[str], tasks: Sequence[str]) -> dict[str, TaskDrop]:
        """Measures on the report items; see `Source`."""
        return {drop.task: drop for drop in self.examiner.drops_of(heads, tasks)}

    @contextmanager
    def _verb(self, stage: str) -> Iterator[Report]:
        """A context for a stage in which a verb runs; the previous stage continues afterwards."""
        stages = self.session.stages
        before = stages.name
        yield stages.enter_verb(stage)
        stages.enter(before)


def search_stage(task: str, method: str) -> str:
    """Returns the stage of a search."""
    return f"{method} on {task}"


def atlas_rows(study: Study) -> int | None:
    """Returns the rows of the atlas of universal heads; None for its own budget."""
    rows = study.settings.search.rows
    return None if rows is None else max(rows, FEWEST_ROWS) * len(study.tasks)


def mean(values: Iterable[float]) -> float:
    """Returns the mean as a plain number."""
    return float(np.mean(list(values)))
