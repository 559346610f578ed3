"""The expected steps of tables and figures, from a rehearsal without the model."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from broca.errors import BadInput
from broca.runs import Step, claim_tasks, localization_steps
from broca.searches import METHODS, AtlasSearch
from broca.studies.paper.reproduction import Row
from broca.studies.paper.study import (
    ATLAS,
    LONGEST,
    HeadList,
    Study,
    atlas_rows,
    search_stage,
)
from broca.verification import TaskDrop

Experiment = Callable[[Study], list[Row]]
"""A function that makes the rows of a table or figure."""


def experiment_stage(name: str, study: Study) -> str:
    """The stage that makes a table or figure."""
    return f"{name} of {study.model.name}"


def study_steps(study: Study, experiments: Mapping[str, Experiment]) -> list[Step]:
    """Returns the steps of some tables and figures on a model.

    Args:
        study: The study, of which only the intact scores are known.
        experiments: The functions of the tables and figures, in their order.
    """
    model = study.model.fingerprint
    source = _Rehearsal(study)
    rehearsed = study.rehearsed(source)
    for name, experiment in experiments.items():
        source.begin(name)
        try:
            experiment(rehearsed)
        except BadInput:
            continue  # the refusal is reported when the table is made
    steps = []
    for name in experiments:
        stage = experiment_stage(name, study)
        steps.append(Step(stage, source.scored[name], f"scores of {model}", returns=True))
        steps += [
            Step(stage, rows, f"{kind} {model}", verb=True)
            for stage, kind, rows in source.verbs[name]
        ]
    return steps


class _Rehearsal:
    """A source that measures nothing and counts rows.

    Every search returns k heads, of which all tasks share the first; one head is universal.

    Args:
        study: The rehearsed study.
    """

    def __init__(self, study: Study) -> None:
        self._names = study.model.components.names
        self._intact = study.intact
        self.verbs: dict[str, list[tuple[str, str, int]]] = {}
        """By table or figure: the stages of its searches, their kinds and rows."""
        self.scored: dict[str, int] = {}
        """By table or figure: the number of its rows besides searches."""
        self._current = ""

    def begin(self, name: str) -> None:
        """Begins another table or figure."""
        self._current, self.verbs[name], self.scored[name] = name, [], 0

    def universal(self, study: Study) -> tuple[str, ...]:
        """Returns one head."""
        tasks, search = len(study.tasks), study.settings.search
        rows = AtlasSearch.budget(atlas_rows(study), tasks)
        self.verbs[self._current].append((ATLAS, "atlas", rows + 2 * tasks * search.items))
        return self._names[:1]

    def search(self, study: Study, task: str, method: str) -> HeadList:
        """Returns k heads."""
        settings, weighs = study.settings, METHODS[method].measures_others
        if not (settings.keep_universal or weighs):
            _ = study.universal
        others = (*study.general(task), *study.same_skill(task)) if weighs else ()
        tasks = claim_tasks(
            task,
            {name: study.benchmarks[name] for name in (task, *others)},
            items=settings.search.items,
            seed=settings.seed,
        )
        options = replace(settings.search, method=method)
        steps = localization_steps(
            study.model, tasks, method, options, verify=False, interactions=0
        )
        stage = search_stage(task, method)
        self.verbs[self._current].append((stage, method, sum(step.rows for step in steps)))
        start = zlib.crc32(task.encode()) % len(self._names)
        others_of = (*self._names[start:], *self._names[:start])
        order = tuple(dict.fromkeys((self._names[0], *others_of)))
        return HeadList(order[: settings.search.k], order[:LONGEST], (), 0)

    def drops(self, heads: Sequence[str], tasks: Sequence[str]) -> dict[str, TaskDrop]:
        """Returns the intact scores."""
        self.scored[self._current] += 2 * sum(self._intact[task].items for task in tasks)
        return {task: self._intact[task] for task in tasks}
