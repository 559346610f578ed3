"""`atlas`: the effect of every component on every task, from one joint run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from broca import searches
from broca.atlases.assembling import assembled, at_chance
from broca.errors import NothingToLocalize
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options, without
from broca.results.atlas import Atlas
from broca.runs.setup import ablation_of, open_session
from broca.runs.task_sets import compared_tasks, equal_tasks, load_tasks
from broca.runs.verb_steps import INTACT, REFERENCES, atlas_steps
from broca.searches.atlas import AtlasProblem, AtlasSearch
from broca.tasks import Task

_DONORS = 100


@takes_options
def atlas(
    model: str | GatedModel,
    tasks: str | Sequence[str | Task] = "auto",
    *,
    seed: int = 0,
    search_options: Annotated[SearchOptions, without("method", "options", "max_minutes")],
    run_options: RunOptions,
) -> Atlas:
    """Rates every component on every task under the same random masks.

    An atlas is a screen: it lists which components each task needs more than the others, one by
    one. It does not test a set jointly; `broca.localize` does.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        tasks: The tasks, as a list or joined by commas. `auto`: all shipped tasks for a shipped
            model, else all of `include_path`.
        rows: Maximum number of (mask, item) rows over all tasks; 800 for each by default.
        k: Maximum number of components to select for a task.
        items: Maximum number of items of each task.
        response: Response of the rows; by default `probability` if every task has items with a
            margin, else `accuracy`.
        seed: Seed of the items, the masks and all other random draws.

    Returns:
        The atlas; `save` writes `atlas.json` and `atlas.html`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    options: Any = search_options
    ablation = ablation_of(run_options.ablation_options, seed)
    with open_session(model, run_options, others=[tasks]) as opened:
        gated, stages = opened.model, opened.stages
        started = time.perf_counter()
        stages.enter("building the tasks")
        catalog, task_options = opened.catalog, opened.options.task_options
        names = compared_tasks(tasks, gated, catalog)
        budget = AtlasSearch.budget(options.rows, len(names))
        benchmarks = load_tasks(gated, names, catalog, options=task_options)
        task_set = equal_tasks(benchmarks, items=options.items, seed=seed)
        every = np.arange(len(task_set.bank))
        donors = every[:: max(1, len(every) // _DONORS)].tolist()
        run = opened.run(
            task_set,
            ablation=ablation,
            donors=donors if ablation.needs_donors else [],
            settings={
                "verb": "atlas",
                "tasks": list(names),
                "rows": options.rows,
                "items": options.items,
                "seed": seed,
                "response": options.response,
                "ablation": [ablation.kind, ablation.scale],
                "components": gated.kinds,
                "task_options": task_options.to_dict(),
            },
        )
        measuring = f"measuring {len(names)} tasks under random masks"
        stages.expect(
            atlas_steps(task_set, measuring, rows=budget, answers=options.response != "accuracy")
        )
        stages.enter(INTACT)
        scores = run.scores((), part="locate")
        if all(at_chance(run, name, scores) for name in names):
            raise NothingToLocalize(
                f"the intact model can do none of the {len(names)} tasks: choose tasks that it "
                "can do"
            )
        stages.enter(REFERENCES)
        referenced = run.referenced(
            options.response or "probability",
            task_set.places["locate"],
            otherwise="all tasks are measured in their own metrics"
            if options.response is None
            else None,
        )
        stages.enter(measuring)
        problem = AtlasProblem(
            components=len(gated.components),
            tasks={name: referenced.places[name] for name in names},
            rows=options.rows,
            seed=seed,
        )
        run.note_search("atlas", problem, {})
        chart = searches.run(AtlasSearch(problem), run.responding(referenced.response))
        stages.enter("reading the matrix")
        return assembled(run, chart, scores, referenced, k=options.k, seed=seed, started=started)
