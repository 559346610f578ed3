"""Makes the result of an atlas from its measurements."""

import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from broca.atlases.findings import LEAST, EffectMatrix, find
from broca.recovery.joint import interval
from broca.results.atlas import Atlas, AtlasCost, AtlasTask, EffectRows
from broca.results.base import AblationInfo
from broca.runs.references import Referenced
from broca.runs.run import Run, model_info
from broca.runs.task_sets import at_chance_note
from broca.searches.atlas import MeasuredAtlas


def at_chance(run: Run, name: str, scores: Mapping[str, float]) -> bool:
    """Whether the intact model is at chance on a task, which then shows no damage."""
    items = len(run.tasks.places["locate"][name])
    return run.tasks.benchmarks[name].at_chance(scores[name], items=items)


def assembled(
    run: Run,
    chart: MeasuredAtlas,
    scores: Mapping[str, float],
    referenced: Referenced,
    *,
    k: int,
    seed: int,
    started: float,
) -> Atlas:
    """Makes the result of an atlas.

    Args:
        run: The run of the atlas.
        chart: The result of the search.
        scores: Score of every task on the intact model.
        referenced: The items and their response.
        k: Maximum number of components to select for a task.
        seed: Seed of the run.
        started: Start of the run on `time.perf_counter`.
    """
    model, names = run.model, run.model.components.names
    benchmarks = run.tasks.benchmarks
    matrix = EffectMatrix(
        chart.joint.effects,
        chart.joint.resampled,
        np.array([not at_chance(run, name, scores) for name in benchmarks]),
        tuple(benchmark.capability for benchmark in benchmarks.values()),
        chart.joint.explained,
    )
    findings = find(matrix, chart.tasks, names, k=k)
    low, high = interval(matrix.effects, matrix.resampled)

    def arranged(values: NDArray[np.float64]) -> EffectRows:
        return tuple(tuple(row) for row in values[np.ix_(findings.rows, findings.columns)].tolist())

    notes: list[str] = []
    for row, name in enumerate(run.tasks.benchmarks):
        notes += run.tasks.notes_of(name)
        if not matrix.usable[row]:
            notes.append(at_chance_note(name))
    if len(set(matrix.capabilities)) == 1:
        notes.append("all tasks are of one capability: selections have nothing to be compared with")
    if chart.joint.shrunk:
        components = chart.masks.shape[1]
        notes.append(
            f"{len(chart.masks)} masks for {components} components are few: estimated effects "
            "are too small, and intervals cover the noise alone; about "
            f"{5 * components * len(chart.tasks):,} `rows` would do"
        )
    scoring_rows = run.scoring_rows
    new_rows, tokens = run.finish()
    return Atlas(
        model=model_info(model),
        tasks=tuple(
            AtlasTask(
                name=(name := chart.tasks[row]),
                capability=benchmarks[name].capability,
                metric=benchmarks[name].metric,
                intact=scores[name],
                items=chart.items[row],
                at_chance=not bool(matrix.usable[row]),
                change=float(chart.changes[:, row].mean()),
                explained=float(chart.joint.explained[row]),
            )
            for row in findings.rows
        ),
        components=tuple(names[column] for column in findings.columns),
        effects=arranged(matrix.effects),
        low=arranged(low),
        high=arranged(high),
        universal=findings.universal,
        selections=findings.selections,
        clusters=findings.clusters,
        task_clusters=findings.task_clusters,
        response=referenced.response,
        kinds=model.kinds,
        ablation=AblationInfo(run.ablation.kind, run.ablation.scale),
        masks=len(chart.masks),
        share=float(chart.masks.mean()),
        least=LEAST,
        k=k,
        resamples=len(matrix.resampled),
        shrunk=chart.joint.shrunk,
        seed=seed,
        cost=AtlasCost(
            rows=run.search_rows,
            scoring_rows=scoring_rows,
            measured=new_rows,
            tokens=tokens,
            wall_s=round(time.perf_counter() - started, 3),
        ),
        notes=(*notes, *referenced.notes),
    )
