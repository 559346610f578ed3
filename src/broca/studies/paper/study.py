"""One model, its tasks, the heads found so far and the scores without them: tables share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from broca.errors import BadInput, NothingToLocalize
from broca.models import SHIPPED_MODELS, GatedModel
from broca.published import model_like
from broca.runs.recording import Journaling
from broca.runs.task_sets import other_tasks
from broca.runs.workbench import Workbench
from broca.searches import METHODS
from broca.searches.atlas import FEWEST_ROWS
from broca.studies.paper import beside
from broca.studies.paper.record import Row
from broca.tasks import Catalog
from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS
from broca.verbs.atlas import atlas
from broca.verbs.localize import localize
from broca.verification import MeasuredDrop, Scope

PAPER = (*PAPER_TASKS, "rhyme", "profanity")
"""The paper's tasks: what `auto` means for a model that is not shipped."""

KNOWLEDGE = ("mmlu", "wmdp_bio", "wmdp_chem", "wmdp_cyber")
"""The paper's multiple choice of knowledge; elsewhere tasks of the capability `knowledge`."""

_MEASURED_ONLY = (*PAPER_GROUPS["general"], "humaneval_instruct")
"""Tasks that the paper measures and does not localize."""

_LONGEST = 10


@dataclass(frozen=True)
class Settings:
    """What all tables and figures share.

    Attributes:
        tasks: Tasks to measure, as a list or joined by commas; `auto`: all shipped ones for a
            shipped model, else all of `include_path`, else the paper's.
        include_path: A folder of lm-eval YAML tasks to add.
        method: Search behind every list of heads; the paper's by default.
        rows: Rows of each search; by default what the method needs.
        items: Items of each search.
        limit: Most report items of each task.
        k: Heads of each list.
        keep_universal: Whether lists keep universal heads, which the paper filters out.
        allow_code: Whether tasks may execute what the model writes.
        seed: Seed of everything random.
        journal: File that keeps every measured row; in memory if None.
    """

    tasks: str | Sequence[str] = "auto"
    include_path: str | Path | None = None
    method: str = "cs-stratified"
    rows: int | None = None
    items: int = 100
    limit: int | None = None
    k: int = 5
    keep_universal: bool = False
    allow_code: bool = False
    seed: int = 0
    journal: Path | None = None

    def to_dict(self) -> Row:
        """What a record states: everything but where rows are kept."""
        found = asdict(self)
        found["tasks"] = list(self.tasks) if not isinstance(self.tasks, str) else self.tasks
        found["include_path"] = None if self.include_path is None else str(self.include_path)
        del found["journal"]
        return found


@dataclass(frozen=True)
class Found:
    """What a search found for a task.

    Attributes:
        heads: At most k heads, most harmful first.
        order: The first ten heads whose loss harms the task.
        universal: Heads that were left out of both because all tasks need them.
        rows: Rows that the search took.
    """

    heads: tuple[str, ...]
    order: tuple[str, ...]
    universal: tuple[str, ...]
    rows: int


class Study:
    """One model and its tasks.

    Args:
        model: The model, with heads as components.
        settings: What all tables share.
        report: Receives which stage is going on.
        keeping: Where rows are kept; in memory if None. The caller closes it.

    Raises:
        BrocaError: A task is unknown or cannot be used, or the model can do none.
    """

    def __init__(
        self, model: GatedModel, settings: Settings, report: Callable[[str], None],
        keeping: Journaling | None = None,
    ) -> None:  # fmt: skip
        self.model, self.settings, self._report = model, settings, report
        self._keeping = keeping or Journaling()
        self.notes: list[str] = []
        self.published = model_like(
            layers=model.structure.layers, heads=model.heads, name=model.name
        )
        self._found: dict[tuple[str, str], Found] = {}
        names = self._names()
        report(f"building {len(names)} tasks")
        self.bench = Workbench.build(
            model, names[0], others=names[1:], include_path=settings.include_path,
            items=settings.items, limit=settings.limit, allow_code=settings.allow_code,
            keeping=self._keeping,
        )  # fmt: skip
        self._examiner = self.bench.examiner(Scope(seed=settings.seed, resamples=500))
        self.tasks = self._usable(names)
        wanted = [name for name in self.tasks if name not in _MEASURED_ONLY]
        self.localized = tuple(wanted) or self.tasks

    def _names(self) -> tuple[str, ...]:
        settings = self.settings
        own = self.model.name in SHIPPED_MODELS or settings.include_path is not None
        if settings.tasks == "auto" and not own:
            if settings.allow_code:
                return PAPER
            coded = [name for name, one in PAPER_TASKS.items() if one.executes_code]
            self.notes.append(f"{' and '.join(coded)} execute code: they need --allow-code")
            return tuple(name for name in PAPER if name not in coded)
        names = other_tasks("", settings.tasks, self.model.name, Catalog(settings.include_path))
        if not names:
            raise BadInput("no tasks are named: give --tasks T1,T2")
        return names

    def _usable(self, names: Sequence[str]) -> tuple[str, ...]:
        """The tasks that the intact model can do: others can lose nothing."""
        self._report("scoring the intact model")
        usable = []
        for one in self._examiner.drops_of([], names):
            benchmark = self.bench.benchmarks[one.task]
            if benchmark.at_chance(one.before, items=one.items):
                self.notes.append(
                    f"{self.model.name} scores {one.before:.3f} on {one.task}, no better than "
                    "guessing: left out"
                )
            else:
                usable.append(one.task)
        if not usable:
            raise NothingToLocalize(
                f"{self.model.name} can do none of the {len(names)} tasks: choose tasks that it "
                "can do"
            )
        return tuple(usable)

    def skill(self, task: str) -> str:
        """What a task stands for: in the paper, or by its metadata."""
        if task in PAPER_TASKS:
            return PAPER_TASKS[task].skill
        return self.bench.benchmarks[task].capability

    def same_skill(self, task: str) -> tuple[str, ...]:
        """The other tasks of the task's skill."""
        return tuple(
            one for one in self.tasks if one != task and self.skill(one) == self.skill(task)
        )

    def general(self, task: str) -> tuple[str, ...]:
        """The tasks whose mean is the general score beside a task.

        Where the paper's are measured, these (without mmlu beside other knowledge tasks); else all
        of another skill.
        """
        rest = [one for one in self.tasks if one != task and self.skill(one) != self.skill(task)]
        paper = [one for one in rest if one in PAPER_GROUPS["general"]]
        if task in KNOWLEDGE:
            paper = [one for one in paper if one not in KNOWLEDGE]
        return tuple(paper or rest)

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The tasks that ask for knowledge by multiple choice."""
        return tuple(
            one for one in self.tasks if one in KNOWLEDGE or self.skill(one) == "knowledge"
        )

    @cached_property
    def universal(self) -> tuple[str, ...]:
        """The heads that an atlas of the tasks calls universal, and those that were published.

        They hurt tasks of more than half of the skills: what one skill alone needs is its own.
        """
        published = beside.universal(self.published)
        skills = {self.skill(task) for task in self.tasks}
        if len(skills) < 2:
            return published
        s = self.settings
        self._report("atlas: which heads every task needs")
        found = atlas(
            self.model, tasks=self.tasks, include_path=s.include_path, k=s.k, items=s.items,
            rows=None if s.rows is None else max(s.rows, FEWEST_ROWS) * len(self.tasks),
            seed=s.seed, allow_code=s.allow_code, journal=self._keeping,
        )  # fmt: skip
        widely = [
            one.name
            for one in found.universal
            if 2 * len({self.skill(task) for task in one.hurts}) > len(skills)
        ]
        return tuple(dict.fromkeys((*widely, *published)))

    def found(self, task: str, method: str | None = None) -> Found:
        """The heads that a method finds for a task, without universal ones."""
        method = method or self.settings.method
        if (task, method) not in self._found:
            # a method that weighs other tasks sets apart by itself what they need too
            keep = self.settings.keep_universal or METHODS[method].measures_others
            left_out = () if keep else self.universal
            self._report(f"{method} on {task}")
            s = self.settings
            result = localize(
                self.model, task=task, include_path=s.include_path, method=method, rows=s.rows,
                others=self.general(task) if METHODS[method].measures_others else [],
                same_skill=self.same_skill(task) if METHODS[method].measures_others else (),
                k=s.k, items=s.items, seed=s.seed, allow_code=s.allow_code, verify=False,
                journal=self._keeping,
            )  # fmt: skip
            harmful = [one.name for one in result.ranking if one.effect < 0]
            listed = result.selected if METHODS[method].measures_others else harmful
            self._found[task, method] = Found(
                heads=tuple(one for one in listed if one not in left_out)[: s.k],
                order=tuple(one for one in harmful if one not in left_out)[:_LONGEST],
                universal=tuple(one for one in listed[: s.k] if one in left_out),
                rows=result.cost.rows,
            )
        return self._found[task, method]

    def drops(self, heads: Sequence[str], tasks: Iterable[str]) -> dict[str, MeasuredDrop]:
        """What tasks lose without some heads; no row is measured twice."""
        names = list(tasks)
        if not names:
            return {}
        return {one.task: one for one in self._examiner.drops_of(heads, names)}

    def scores(self, task: str, heads: Sequence[str]) -> Row:
        """Task and general score, intact and without some heads."""
        general = self.general(task)
        drops = self.drops(heads, [task, *general])
        own = drops.pop(task)
        row: Row = {
            "intact": own.before, "ablated": own.after, "drop": own.drop.value,
            "drop_low": own.drop.low, "drop_high": own.drop.high, "p": own.p,
        }  # fmt: skip
        if drops:
            row["general_intact"] = mean(one.before for one in drops.values())
            row["general_ablated"] = mean(one.after for one in drops.values())
            row["general_drop"] = mean(one.drop.value for one in drops.values())
        return row


def mean(values: Iterable[float]) -> float:
    """The mean as a plain number."""
    return float(np.mean(list(values)))
