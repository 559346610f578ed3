"""`atlas`: the effect of every component on every task, from one joint run."""

import time
from typing import Any

import numpy as np

from broca.atlases.assembly import assembled, at_chance
from broca.errors import NothingToLocalize
from broca.options import AtlasOptions, verb
from broca.results.atlas import Atlas
from broca.runs.run import INTACT
from broca.runs.search import REFERENCES
from broca.runs.session import ablation_of, open_run
from broca.runs.task_sets import compared_tasks, equal_tasks, load_tasks
from broca.searches.atlas import AtlasProblem, atlas_rows, measure_atlas

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
        tasks = equal_tasks(benchmarks, items=options.items, seed=seed)
        every = np.arange(len(tasks.bank))
        donors = every[:: max(1, len(every) // _DONORS)].tolist()
        run = opened.on(
            tasks,
            ablation=ablation,
            donors=donors if ablation.needs_donors else [],
            settings={
                "verb": "atlas",
                "tasks": list(names),
                "rows": options.rows,
                "items": options.items,
                "seed": seed,
                "response": response,
                "ablation": [ablation.kind, ablation.scale],
                "components": gated.kinds,
                "task_options": task_options.to_dict(),
            },
        )
        stages.expect(budget + len(every))
        stages.enter(INTACT)
        scores = run.scores((), part="locate")
        if all(at_chance(run, name, scores) for name in names):
            raise NothingToLocalize(
                f"the intact model can do none of the {len(names)} tasks: choose tasks that it "
                "can do"
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
        return assembled(run, chart, scores, referenced, k=options.k, seed=seed, started=started)
