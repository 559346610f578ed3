"""The searches of a localization: the first gives the answer, the others measure its stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from broca import searches
from broca.engine import Ablation
from broca.errors import BadInput
from broca.options import RunOptions, SearchOptions
from broca.results.localization import Repeat
from broca.runs.problems import problem_of, refer, require_search
from broca.runs.references import Referenced
from broca.runs.run import Run
from broca.runs.setup import Session
from broca.runs.task_sets import TaskSet
from broca.runs.timing import rows_within
from broca.runs.verb_steps import AGAIN, REFERENCES, search_rows
from broca.searches import Problem, Ranking
from broca.tasks import Task


@dataclass(frozen=True)
class Searched:
    """A search of a run.

    Attributes:
        referenced: Its items and their response.
        problem: The problem that it solved.
        ranking: The ranking that it returned.
    """

    referenced: Referenced
    problem: Problem
    ranking: Ranking


@dataclass(frozen=True, kw_only=True)
class Searches:
    """Searches for the components that a task needs; they differ only in their seed.

    Attributes:
        opened: The model, the journal and the workers.
        task: The task.
        others: Tasks that the selection should not affect.
        same_skill: More tasks of its capability.
        report_items: Maximum number of `report` items; None for all.
        method: Name of the method.
        options: Its budget and settings.
        ablation: How components are ablated.
        interactions: Number of components that are ablated in pairs.
    """

    opened: Session
    task: str | Task
    others: str | Sequence[str | Task]
    same_skill: str | Sequence[str | Task]
    report_items: int | None
    method: str
    options: SearchOptions
    ablation: Ablation
    interactions: int

    def run(self, seed: int, *, noted: bool = True) -> Run:
        """Makes the run of a seed, with its items.

        Args:
            seed: Seed of its items and of all other random draws.
            noted: Whether the out folder records its digests.
        """
        opened = self.opened
        tasks = opened.claimed(
            self.task, others=self.others, same_skill=self.same_skill, items=self.options.items,
            seed=seed, report_items=self.report_items,
        )  # fmt: skip
        settings = _settings_of(
            tasks, self.method, self.options, opened.options, components=opened.model.kinds,
            seed=seed, interactions=self.interactions,
        )  # fmt: skip
        return opened.run(
            tasks, ablation=self.ablation, donors=tasks.located, settings=settings, noted=noted
        )

    def search(self, run: Run, *, seed: int, stage: str = "") -> Searched:
        """Finds the reference answers that the search needs, and searches.

        Args:
            run: The run to search on.
            seed: Seed of the search.
            stage: Stage of its progress; by default it names the method.
        """
        run.stages.enter(REFERENCES)
        referenced = refer(self.method, self.options, run)
        options = replace(self.options, rows=self._rows(run, referenced))
        problem = problem_of(
            run.model, run.tasks, referenced.places, options, seed=seed,
            continuous=referenced.continuous,
        )  # fmt: skip
        run.stages.enter(stage or f"searching ({self.method})")
        ranking = run.search(self.method, problem, referenced.response, self.options.options)
        return Searched(referenced, problem, ranking)

    def _rows(self, run: Run, referenced: Referenced) -> int | None:
        """Returns the budget in rows: the given one, or fewer if the time allows fewer."""
        options = self.options
        if options.max_minutes is None:
            return options.rows
        run.stages.enter("timing some rows")
        seconds = 60 * options.max_minutes
        allowed = rows_within(run, seconds, referenced.places)
        usual = search_rows(run.model, run.tasks, self.method, options)
        if allowed >= usual:
            return options.rows
        run.stages.note(
            f"{options.max_minutes:g} minutes allow about {allowed:,} of at most {usual:,} rows"
        )
        try:
            require_search(self.method, replace(options, rows=allowed), run.model, run.tasks)
        except BadInput as error:
            raise BadInput(
                f"`max_minutes` {options.max_minutes:g} allow about {allowed} rows here: {error}"
            ) from None
        return allowed

    def repeat(self, seed: int) -> Repeat:
        """Returns the selection of a search with another seed, on other items and masks."""
        run = self.run(seed, noted=False)
        ranking = self.search(run, seed=seed, stage=AGAIN).ranking
        rows = run.search_rows
        run.finish()
        return Repeat(
            seed=seed,
            selected=tuple(run.model.components.names[column] for column in ranking.selected),
            answer=None if ranking.answer is None else ranking.answer.says,
            rows=rows,
        )


def _settings_of(
    tasks: TaskSet,
    method: str,
    search_options: SearchOptions,
    run_options: RunOptions,
    *,
    components: str,
    seed: int,
    interactions: int,
) -> dict[str, Any]:
    """The options that identify a localization, besides weights and items, as plain values."""
    ablation, minutes = run_options.ablation_options, search_options.max_minutes
    return {
        "task": tasks.task,
        "others": tuple(tasks.benchmarks)[1:],
        "same_skill": list(tasks.same_skill),
        "method": method,
        "options": {n: searches.written(value) for n, value in search_options.options.items()},
        "rows": search_options.rows,
        **({} if minutes is None else {"max_minutes": minutes}),
        "k": search_options.k,
        "items": search_options.items,
        "seed": seed,
        "response": search_options.response,
        "ablation": [ablation.ablation, ablation.scale],
        "components": components,
        "task_options": run_options.task_options.to_dict(),
        "interactions": interactions,
    }
