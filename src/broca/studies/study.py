"""A model with its tasks, the head lists so far and the scores without them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from broca.errors import BadInput, NothingToLocalize
from broca.known_paths import SHIPPED_MODELS
from broca.options import ReproduceOptions, RunOptions
from broca.published import PublishedFigures
from broca.results.verification import TaskDrop
from broca.runs.run import Run
from broca.runs.task_sets import claim_tasks, load_tasks, other_tasks
from broca.searches import FEWEST_ROWS, METHODS
from broca.tasks import PAPER_GROUPS, PAPER_TASKS
from broca.verbs.atlas import atlas
from broca.verbs.localize import localize
from broca.verification import Scope

Row = dict[str, Any]
"""A row of a table: plain values by column."""

PAPER = (*PAPER_TASKS, "rhyme", "profanity")
"""The paper's tasks, which `auto` stands for on models that are not shipped."""

KNOWLEDGE = ("mmlu", "wmdp_bio", "wmdp_chem", "wmdp_cyber")
"""The paper's multiple-choice knowledge tasks; on other tasks, those of capability `knowledge`."""

_MEASURED_ONLY = (*PAPER_GROUPS["general"], "humaneval_instruct")
"""Tasks that the paper measures but does not localize."""

LONGEST = 10
"""Maximum number of heads of an order."""


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


class Study:
    """A model and its tasks.

    Args:
        opened: The open model, with heads as components.
        options: The options of all tables.

    Raises:
        BrocaError: A task is unknown or cannot be used, or the model can do none.
    """

    def __init__(self, opened: Run, options: ReproduceOptions) -> None:
        self.model, self.options, self._opened = opened.model, options, opened
        self.notes: list[str] = []
        structure = self.model.structure
        self.published = PublishedFigures.of(
            layers=structure.layers, heads=self.model.heads, name=self.model.name
        )
        self._lists: dict[tuple[str, str | None], HeadList] = {}
        names = self._names()
        opened.stages.enter(f"building {len(names)} tasks")
        self.benchmarks = load_tasks(self.model, names, opened.catalog)
        items = claim_tasks(
            names[0], self.benchmarks, items=options.search_options.items, seed=options.seed,
            limit=options.limit, searched="task",
        )  # fmt: skip
        settings = {"study": "paper", "tasks": list(names), "seed": options.seed}
        self.run = opened.on(items, settings=settings)
        self._examiner = self.run.examiner(Scope(seed=options.seed, resamples=500))
        self.tasks = self._usable(names)
        localizable = tuple(name for name in self.tasks if name not in _MEASURED_ONLY)
        self.localized = localizable or self.tasks

    def _names(self) -> tuple[str, ...]:
        tasks, source = self.options.tasks, self._opened.options.source_options
        shipped = self.model.source in SHIPPED_MODELS
        if tasks == "auto" and not shipped and source.include_path is None:
            if source.allow_code:
                return PAPER
            coded = [name for name, task in PAPER_TASKS.items() if task.executes_code]
            self.notes.append(f"{' and '.join(coded)} execute code: they need `allow_code`")
            return tuple(name for name in PAPER if name not in coded)
        names = other_tasks("", tasks, self.model, self._opened.catalog)
        if not names:
            raise BadInput("`tasks` names none: give T1,T2")
        return names

    def _usable(self, names: Sequence[str]) -> tuple[str, ...]:
        """Returns the tasks that the intact model can do; other tasks can lose nothing."""
        self._opened.stages.enter("scoring the intact model")
        usable = []
        for drop in self.drops([], names).values():
            if self._examiner.trial.guesses(drop.task, drop.before):
                self.notes.append(
                    f"{self.model.name} scores {drop.before:.3f} on {drop.task}, no better than "
                    "guessing: left out"
                )
            else:
                usable.append(drop.task)
        if not usable:
            raise NothingToLocalize(
                f"{self.model.name} is shown to do none of the {len(names)} tasks: choose tasks "
                "that it can do"
            )
        return tuple(usable)

    def skill(self, task: str) -> str:
        """Returns the skill of a task, by the paper or by its metadata."""
        if task in PAPER_TASKS:
            return PAPER_TASKS[task].skill
        return self.benchmarks[task].capability

    def same_skill(self, task: str) -> tuple[str, ...]:
        """Returns the other tasks of the task's skill."""
        skill = self.skill(task)
        return tuple(name for name in self.tasks if name != task and self.skill(name) == skill)

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
        """The multiple-choice knowledge tasks."""
        return tuple(
            name for name in self.tasks if name in KNOWLEDGE or self.skill(name) == "knowledge"
        )

    @cached_property
    def universal(self) -> tuple[str, ...]:
        """The heads that an atlas of the tasks calls universal, and those that were published.

        They hurt tasks of more than half of the skills; heads that only one skill needs are not
        universal.
        """
        published = self.published.heads("universal")
        skills = {self.skill(task) for task in self.tasks}
        if len(skills) < 2:
            return published
        budget, before = self.options.search_options, self._opened.stages.name
        rows = None if budget.rows is None else max(budget.rows, FEWEST_ROWS) * len(self.tasks)
        found = atlas(
            self.model, tasks=self.tasks, seed=self.options.seed, rows=rows, items=budget.items,
            k=budget.k, run_options=self._within("atlas: which heads every task needs"),
        )  # fmt: skip
        self._opened.stages.enter(before)
        measured = [
            head.name
            for head in found.universal
            if 2 * len({self.skill(task) for task in head.hurts}) > len(skills)
        ]
        return tuple(dict.fromkeys((*measured, *published)))

    def list_of(self, task: str, method: str | None = None) -> HeadList:
        """Returns the heads that a method selects for a task.

        Those of the study's method are without universal heads; a named method keeps them.
        """
        if (task, method) not in self._lists:
            self._lists[task, method] = self._searched(task, method)
        return self._lists[task, method]

    def _searched(self, task: str, named: str | None) -> HeadList:
        method = named or self.options.method
        # a method that measures other tasks excludes universal components itself
        weighs = METHODS[method].measures_others
        budget, before = self.options.search_options, self._opened.stages.name
        found = localize(
            self.model, task=task, others=self.general(task) if weighs else (),
            same_skill=self.same_skill(task) if weighs else (), verify=False,
            report_items=len(self.run.tasks.places["report"][task]), seed=self.options.seed,
            method=method, rows=budget.rows, items=budget.items, k=budget.k,
            run_options=self._within(f"{method} on {task}"),
        )  # fmt: skip
        self._opened.stages.enter(before)
        left_out = () if named or weighs or self.options.keep_universal else self.universal
        harmful = [line.name for line in found.ranking if line.effect < 0]
        listed = found.selected if weighs else harmful
        return HeadList(
            heads=tuple(name for name in listed if name not in left_out)[: budget.k],
            order=tuple(name for name in harmful if name not in left_out)[:LONGEST],
            universal=tuple(name for name in listed[: budget.k] if name in left_out),
            rows=found.cost.rows,
        )

    def _within(self, stage: str) -> RunOptions:
        """Begins the stage of another verb, and returns its options."""
        options = RunOptions.of({}, self._opened.options)
        return replace(options, on_progress=self._opened.stages.within_verb(stage))

    def drops(self, heads: Sequence[str], tasks: Iterable[str]) -> dict[str, TaskDrop]:
        """Returns the drops of tasks without some heads; no row is measured twice."""
        names = list(tasks)
        measured = self._examiner.drops_of(heads, names) if names else ()
        return {drop.task: drop for drop in measured}

    def scores(self, task: str, heads: Sequence[str]) -> Row:
        """Returns task and general score, intact and without some heads."""
        drops = self.drops(heads, [task, *self.general(task)])
        lost = drops.pop(task)
        low, high = lost.ci or (None, None)
        row: Row = {
            "intact": lost.before, "ablated": lost.after, "drop": lost.drop,
            "drop_low": low, "drop_high": high, "p": lost.p,
        }  # fmt: skip
        if drops:
            row["general_intact"] = fmean(drop.before for drop in drops.values())
            row["general_ablated"] = fmean(drop.after for drop in drops.values())
            row["general_drop"] = fmean(drop.drop for drop in drops.values())
        return row
