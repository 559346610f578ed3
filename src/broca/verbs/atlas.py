"""`atlas`: the effect of every component on every task, from one joint run."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.atlases.findings import LEAST, EffectMatrix, find
from broca.errors import NothingToLocalize
from broca.options import AtlasOptions, verb
from broca.recovery.joint import interval
from broca.results.atlas import Atlas, AtlasCost, AtlasTask, EffectRows
from broca.results.base import AblationInfo
from broca.runs.references import Referenced
from broca.runs.run import INTACT, Run, model_info
from broca.runs.search import REFERENCES
from broca.runs.session import ablation_of, open_run
from broca.runs.task_sets import at_chance_note, compared_tasks, equal_tasks, load_tasks
from broca.searches.atlas import AtlasProblem, MeasuredAtlas, atlas_rows, measure_atlas

_DONORS = 100


@verb(AtlasOptions)
def atlas(options: AtlasOptions) -> Atlas:
    """Rates every component on every task under the same random masks.

    An atlas is a screen: it lists which components each task needs more than the others, one by
    one. It does not test a set jointly; `broca.localize` does.

    Returns:
        The atlas; `save` writes `atlas.json` and `atlas.html`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    seed, response = options.seed, options.response
    ablation = ablation_of(options.run_options.ablation_options, seed)
    with open_run(options.model, options.run_options, others=[options.tasks]) as opened:
        gated, stages = opened.model, opened.stages
        started = time.perf_counter()
        stages.enter("building the tasks")
        task_options = opened.options.task_options
        names = compared_tasks(options.tasks, gated, opened.catalog)
        budget = atlas_rows(options.rows, len(names))
        benchmarks = load_tasks(gated, names, opened.catalog, options=task_options)
        tasks = equal_tasks(benchmarks, "locate", items=options.items, seed=seed, limit=None)
        every = np.arange(len(tasks.bank))
        donors = every[:: max(1, len(every) // _DONORS)].tolist()
        run = opened.on(
            tasks,
            ablation=ablation,
            donors=donors if ablation.needs_donors else [],
            settings={
                "verb": "atlas", "tasks": list(names), "rows": options.rows, "items": options.items,
                "seed": seed, "response": response, "ablation": [ablation.kind, ablation.scale],
                "components": gated.kinds, "task_options": task_options.to_dict(),
            },
        )  # fmt: skip
        stages.expect(budget + len(every))
        stages.enter(INTACT)
        scores = run.scores((), part="locate")
        trial = tasks.trial("locate")
        able = np.array([not trial.guesses(name, scores[name]) for name in names])
        if not able.any():
            raise NothingToLocalize(
                f"the intact model is shown to do none of the {len(names)} tasks: choose tasks "
                "that it can do"
            )
        stages.enter(REFERENCES)
        wanted: Any = response or "probability"
        otherwise = None if response else "all tasks are measured in their own metrics"
        referenced = run.referenced(wanted, tasks.places["locate"], otherwise=otherwise)
        stages.enter(f"measuring {len(names)} tasks under random masks")
        problem = AtlasProblem(
            components=len(gated.components),
            tasks={name: referenced.places[name] for name in names},
            rows=budget,
            seed=seed,
        )
        chart = run.search(
            measure_atlas(problem), method="atlas", problem=problem, response=referenced.response
        )
        stages.enter("reading the matrix")
        return _assembled(run, options, chart, scores, able, referenced, started)


def _assembled(
    run: Run,
    options: AtlasOptions,
    chart: MeasuredAtlas,
    scores: Mapping[str, float],
    able: NDArray[np.bool_],
    referenced: Referenced,
    started: float,
) -> Atlas:
    """Makes the result from the measurements.

    Args:
        run: The run.
        options: The options of the atlas.
        chart: What was measured.
        scores: Score of every task on the intact model.
        able: Whether it is above chance, task by task; others show no damage.
        referenced: The items and their response.
        started: When the atlas began.
    """
    model, names, benchmarks = run.model, run.model.components.names, run.tasks.benchmarks
    joint, capabilities = chart.joint, tuple(one.capability for one in benchmarks.values())
    matrix = EffectMatrix(joint.effects, joint.resampled, able, capabilities, joint.explained)
    findings = find(matrix, chart.tasks, names, k=options.k)
    low, high = interval(matrix.effects, matrix.resampled)

    def arranged(values: NDArray[np.float64]) -> EffectRows:
        return tuple(tuple(row) for row in values[np.ix_(findings.rows, findings.columns)].tolist())

    notes: list[str] = []
    for row, name in enumerate(run.tasks.benchmarks):
        notes += run.tasks.notes_of(name)
        if not matrix.usable[row]:
            notes.append(at_chance_note(run.tasks.trial("locate"), name, scores[name]))
    if len(set(matrix.capabilities)) == 1:
        notes.append(
            "all tasks ask for one capability: no component can be specific to one of them"
        )
    if chart.joint.shrunk:
        components = chart.masks.shape[1]
        notes.append(
            f"{len(chart.masks)} masks are few for {components} components: the true effects are "
            "larger than the estimated ones, and may lie outside of the intervals; about "
            f"{5 * components * len(chart.tasks):,} `rows` would do"
        )
    scoring_rows = run.scoring_rows
    new_rows, tokens = run.finish()
    return Atlas(
        model=model_info(model),
        tasks=tuple(
            AtlasTask(
                name=(name := chart.tasks[row]), capability=benchmarks[name].capability,
                metric=benchmarks[name].metric, intact=scores[name], items=chart.items[row],
                at_chance=not bool(matrix.usable[row]),
                change=float(chart.changes[:, row].mean()),
                explained=float(chart.joint.explained[row]),
            )
            for row in findings.rows
        ),
        components=tuple(names[column] for column in findings.columns),
        effects=arranged(matrix.effects), low=arranged(low), high=arranged(high),
        universal=findings.universal, selections=findings.selections,
        clusters=findings.clusters, task_clusters=findings.task_clusters,
        response=referenced.response, kinds=model.kinds,
        ablation=AblationInfo(run.ablation.kind, run.ablation.scale),
        masks=len(chart.masks), share=float(chart.masks.mean()), least=LEAST, k=options.k,
        resamples=len(matrix.resampled), shrunk=chart.joint.shrunk, seed=options.seed,
        task_options=run.options.task_options.to_dict(),
        cost=AtlasCost(
            rows=run.search_rows, scoring_rows=scoring_rows, measured=new_rows, tokens=tokens,
            wall_s=round(time.perf_counter() - started, 3),
        ),
        notes=(*notes, *referenced.notes),
    )  # fmt: skip
