"""Assembles the results that are written from the measurements of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from broca.options import TaskOptions
from broca.results.base import AblationInfo
from broca.results.localization import (
    AdditivityInfo,
    Cost,
    Interaction,
    Localization,
    Repeat,
    SearchInfo,
    ranked,
)
from broca.results.verification import Verification
from broca.runs.provenance import model_info
from broca.runs.run import Run
from broca.runs.search import Searched
from broca.runs.task_sets import TaskSet, chance_notes
from broca.searches import Ranking
from broca.verification import plain_verification
from broca.verification.effects import Shared


def localization(
    run: Run,
    method: str,
    searched: Searched,
    baseline: dict[str, float],
    after: dict[str, float],
    verification: Verification | None,
    shared: Shared,
    pairs: Sequence[Interaction],
    repeats: Sequence[Repeat],
    *,
    task_options: TaskOptions,
    seed: int,
    started: float,
) -> Localization:
    """Makes the result of a localization.

    Args:
        run: The run that measured it.
        method: The method of the search.
        searched: The search and its ranking.
        baseline: Score of every task on the intact model.
        after: Score of every task with the selection ablated.
        verification: Statistics, controls and verdict; None if none were requested.
        shared: The components that the other tasks need too.
        pairs: Interactions of the leading components.
        repeats: The selections of searches on other items.
        task_options: How the tasks were prompted and scored.
        seed: Seed of the run.
        started: Start of the run on `time.perf_counter`.
    """
    model, tasks = run.model, run.tasks
    ranking, referenced = searched.ranking, searched.referenced
    selected = tuple(model.components.names[column] for column in ranking.selected)
    if verification is None:
        verification = plain_verification(
            model_info(model), selected, run.ablation, tasks.trial(), baseline, after
        )
    scoring_rows = run.scoring_rows
    rows_measured, tokens = run.finish()
    return Localization(
        model=model_info(model),
        task=tasks.task,
        others=tasks.others,
        same_skill=tasks.same_skill,
        search=SearchInfo(method, ranking.options, seed, run.search_response),
        cost=Cost(
            rows=run.search_rows,
            verification_rows=scoring_rows,
            tokens=tokens,
            wall_s=round(time.perf_counter() - started, 3),
            measured=rows_measured,
        ),
        baseline=baseline,
        ranking=ranked(model.components, ranking.effects, ranking.order, **ranking.details),
        interactions=tuple(pairs),
        repeats=tuple(repeats),
        off_target_effects=_off_target_effects(run, ranking),
        shared_effects=shared.effects,
        universal=shared.universal,
        selected=selected,
        abstained=not selected,
        reason=ranking.reason,
        verification=replace(verification, rows=scoring_rows, documents=tasks.documents),
        response=referenced.response,
        components=model.kinds,
        ablation=AblationInfo(run.ablation.kind, run.ablation.scale),
        task_options=task_options.to_dict(),
        notes=(*_notes(tasks, baseline), *referenced.notes, *_groups(run, ranking)),
        answer=ranking.answer,
        additivity=None
        if ranking.additivity is None
        else AdditivityInfo(**asdict(ranking.additivity)),
    )  # fmt: skip


def _notes(tasks: TaskSet, baseline: Mapping[str, float]) -> tuple[str, ...]:
    """Notes on the tasks for the reader."""
    notes = list(tasks.notes)
    capability = tasks.benchmarks[tasks.task].capability
    for name, benchmark in tasks.benchmarks.items():
        notes += tasks.notes_of(name)
        if name == tasks.task:
            continue
        if benchmark.capability == capability:
            notes.append(
                f"{name} measures the same capability ({capability}) as {tasks.task}: it is "
                "reported separately, and its drop is not an off-target drop"
            )
    return (*notes, *chance_notes(tasks, baseline))


def _groups(run: Run, ranking: Ranking) -> tuple[str, ...]:
    """The method's notes, and its groups of components."""
    names = run.model.components.names
    groups = (
        f"{name}: {', '.join(names[column] for column in columns) or 'none'}"
        for name, columns in ranking.groups.items()
    )
    return (*ranking.notes, *groups)


def _off_target_effects(run: Run, ranking: Ranking) -> dict[str, float]:
    if ranking.others is None:
        return {}
    names = run.model.components.names
    return {names[column]: float(ranking.others[column]) for column in ranking.order}
