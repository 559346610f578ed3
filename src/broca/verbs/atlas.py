"""`atlas`: the effect of every component on every task, from one joint run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.atlases import LEAST, Findings, Matrix, find, keep_to_groups
from broca.engine import Ablation, Engine, EngineOptions, donor_activations
from broca.engine.ablation import AblationKind
from broca.errors import BadInput, NothingToLocalize
from broca.measurement import Response
from broca.models import SHIPPED_MODELS, GatedModel, load
from broca.recovery import interval
from broca.results.atlas import NAME, Atlas, AtlasCost, AtlasTask, Rows
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import AblationInfo
from broca.runs.provenance import model_info, version_of_broca
from broca.runs.recording import Journaling, RowProgress, closes_journal, journaling
from broca.runs.references import with_margins
from broca.runs.task_sets import cut_note, lay_out, load_tasks
from broca.runs.workbench import Report, Stage, requested
from broca.searches import OtherTask, Problem
from broca.searches.atlas import Atlas as AtlasSearch
from broca.searches.atlas import Chart
from broca.tasks import Benchmark, Catalog, TaskOptions
from broca.verification.proof import scores_under

PAGE = "atlas.html"
_DONORS = 100


@closes_journal
def atlas(
    model: str | GatedModel,
    *,
    tasks: str | Sequence[str] = "auto",
    include_path: str | Path | None = None,
    rows: int | None = None,
    k: int = 5,
    items: int = 100,
    seed: int = 0,
    components: str = "heads",
    response: Response | None = None,
    ablation: AblationKind = "zero",
    scale: float = 0.0,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    allow_pickle: bool = False,
    allow_code: bool = False,
    task_options: TaskOptions | None = None,
    engine_options: EngineOptions | None = None,
    journal: str | Path | Journaling | None = None,
    on_progress: Report | None = None,
) -> Atlas:
    """Rates every component on every task under the same random masks.

    It screens: what a task needs beyond the others is listed head by head, and no set is tested
    jointly. `broca.localize` does that.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        tasks: The tasks, as a list or joined by commas. `auto`: all shipped tasks for a shipped
            model, else all of `include_path`.
        include_path: A folder of lm-eval YAML tasks to add.
        rows: Most (mask, item) rows over all tasks; 800 for each by default.
        k: Most components to select for a task.
        items: Most items of each task.
        seed: Seed of the items, the masks and everything else that is random.
        components: Which parts can be ablated, if the model has yet to be loaded.
        response: What the rows measure: by default `probability` where every task has items with a
            margin, else `accuracy`.
        ablation: What stands in for an ablated component: `zero`, `mean` or `resample`.
        scale: The gate of an ablated component.
        dtype: Number format of the weights, if the model has yet to be loaded.
        device: Device, if the model has yet to be loaded.
        device_map: `auto` spreads the model over devices, if it has yet to be loaded.
        allow_pickle: Whether weights in pickle format may be loaded.
        allow_code: Whether tasks may execute what the model writes, in a sandbox.
        task_options: How the tasks are asked.
        engine_options: Size of batches and sharing of work.
        journal: File that keeps every measured row; in memory if None.
        on_progress: Receives what is going on.

    Returns:
        The atlas; `Atlas.to_json` gives `atlas.json`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    report: Report = on_progress or (lambda stage, progress: None)
    if response is not None and response not in get_args(Response):
        raise BadInput(f"--response '{response}' is unknown: use accuracy, margin or probability")
    if k < 1:
        raise BadInput(f"--k must be at least 1, not {k}")
    if not isinstance(model, GatedModel):
        report("loading the model", None)
        model = load(
            model,
            dtype=dtype,
            device=device,
            device_map=device_map,
            allow_pickle=allow_pickle,
            components=components,
        )
    report(model.describe(), None)
    start = time.perf_counter()
    report("building the tasks", None)
    asked = task_options or TaskOptions()
    catalog = Catalog(include_path, allow_code=allow_code)
    names = _names(tasks, model.name, catalog)
    AtlasSearch.budget(rows, len(names))
    benchmarks = load_tasks(model, names, catalog, options=asked)
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    bank, laid_out = lay_out(benchmarks, splits, {"locate": names})
    places = laid_out["locate"]
    how = Ablation(ablation, scale, seed)
    every = np.arange(len(bank))
    donors = every[:: max(1, len(every) // _DONORS)].tolist() if how.kind != "zero" else []
    stage = Stage(report, "scoring the intact model")
    shown = RowProgress(stage.tell)
    engine = Engine(
        model,
        engine_options,
        donors=donor_activations(model, [bank[one][1].requests[0].context for one in donors], how),
        on_progress=shown.within,
    )
    recorder = journaling(journal).begin(
        model=model,
        bank=bank,
        engine=engine,
        ablation=how,
        donors=donors,
        settings={
            "verb": "atlas",
            "tasks": list(names),
            "rows": rows,
            "items": items,
            "seed": seed,
            "response": response,
            "ablation": [ablation, scale],
            "components": model.kinds,
            "task_options": asked.to_dict(),
        },
        progress=shown,
    )
    scoring = recorder.local(bank, donors=donors)
    intact = np.zeros(len(model.components), dtype=bool)
    scores = scores_under(
        intact, benchmarks, {name: own.tolist() for name, own in places.items()}, scoring.run, bank
    )
    usable = np.array(
        [
            not one.at_chance(scores[name], items=len(places[name]))
            for name, one in benchmarks.items()
        ]
    )
    if not usable.any():
        raise NothingToLocalize(
            f"the intact model can do none of the {len(names)} tasks: choose tasks that it can do"
        )
    stage.enter("looking for right answers")
    asking = with_margins(
        response or "probability",
        engine,
        bank,
        laid_out["locate"],
        components=len(model.components),
        otherwise="all tasks are measured in their own metrics" if response is None else None,
    )
    places = asking.places
    executor = recorder.local(asking.bank, donors=donors, response=asking.response, role="search")
    stage.enter(f"measuring {len(names)} tasks under random masks")
    problem = Problem(
        components=len(model.components),
        items=np.zeros(0, dtype=np.intp),
        k=k,
        rows=rows,
        seed=seed,
        others=tuple(OtherTask(name, places[name], places[name][:0]) for name in names),
    )
    search = AtlasSearch(problem)
    recorder.note_search("atlas", problem, {})
    searches.run(search, executor.run)
    chart = search.chart
    report("reading the matrix", None)
    matrix = Matrix(
        chart.found.effects,
        chart.found.resampled,
        usable,
        tuple(one.capability for one in benchmarks.values()),
        LEAST,
    )
    new_rows, tokens = recorder.finish()
    return _assembled(
        _Run(model, benchmarks, scores, chart, matrix, how, asking.response, k, seed),
        AtlasCost(
            rows=executor.rows,
            scoring_rows=scoring.rows,
            tokens=tokens,
            wall_s=round(time.perf_counter() - start, 3),
            measured=new_rows,
        ),
        (*_notes(benchmarks, matrix, chart), *asking.notes),
    )


def save_atlas(found: Atlas, out: str | Path) -> tuple[Path, Path]:
    """Writes `atlas.json` and `atlas.html`, each beside its place and then renamed.

    Returns:
        The two paths.

    Raises:
        BadInput: The folder cannot be written.
    """
    from broca.reports import render_atlas_page

    folder = check_out_folder(out)
    paths = (folder / NAME, folder / PAGE)
    for path, text in zip(paths, (found.to_json(), render_atlas_page(found)), strict=True):
        write_beside(path, text)
    return paths


@dataclass(frozen=True, eq=False)
class _Run:
    """What an atlas is assembled from."""

    model: GatedModel
    benchmarks: Mapping[str, Benchmark]
    scores: Mapping[str, float]
    chart: Chart
    matrix: Matrix
    how: Ablation
    response: str
    k: int
    seed: int


def _assembled(run: _Run, cost: AtlasCost, notes: Sequence[str]) -> Atlas:
    chart, matrix = run.chart, run.matrix
    found = find(matrix, chart.tasks, run.model.components.names, k=run.k)
    low, high = interval(matrix.effects, matrix.resampled)

    def arranged(values: NDArray[np.float64]) -> Rows:
        return tuple(tuple(row) for row in values[np.ix_(found.rows, found.columns)].tolist())

    groups, why_not = keep_to_groups(
        _by_capability(run, found),
        {one.layer: one.heads // one.kv_heads for one in run.model.structure.projections},
        run.model.components.names,
        seed=run.seed,
    )
    return Atlas(
        model=model_info(run.model),
        tasks=tuple(_task(run, row) for row in found.rows),
        components=tuple(run.model.components.names[column] for column in found.columns),
        effects=arranged(matrix.effects),
        low=arranged(low),
        high=arranged(high),
        universal=found.universal,
        selections=found.selections,
        clusters=found.clusters,
        task_clusters=found.task_clusters,
        groups=groups,
        groups_note=why_not,
        response=run.response,
        kinds=run.model.kinds,
        ablation=AblationInfo(run.how.kind, run.how.scale),
        masks=len(chart.masks),
        share=float(chart.masks.mean()),
        least=matrix.least,
        k=run.k,
        resamples=len(matrix.resampled),
        shrunk=chart.found.shrunk,
        seed=run.seed,
        cost=cost,
        notes=tuple(notes),
        broca=version_of_broca(),
    )


def _task(run: _Run, row: int) -> AtlasTask:
    name = run.chart.tasks[row]
    benchmark = run.benchmarks[name]
    return AtlasTask(
        name=name,
        capability=benchmark.capability,
        metric=benchmark.metric,
        intact=run.scores[name],
        items=run.chart.items[row],
        at_chance=not bool(run.matrix.usable[row]),
        change=float(run.chart.changes[:, row].mean()),
        explained=float(run.chart.found.explained[row]),
    )


def _by_capability(run: _Run, found: Findings) -> dict[str, list[str]]:
    """The selected components of all tasks of a capability, each once."""
    sets: dict[str, dict[str, None]] = {}
    for one in found.selections:
        own = sets.setdefault(run.benchmarks[one.task].capability, {})
        own.update(dict.fromkeys(each.name for each in one.components))
    return {capability: list(members) for capability, members in sets.items()}


def _names(tasks: str | Sequence[str], model: str, catalog: Catalog) -> tuple[str, ...]:
    """The tasks to measure, each once."""
    if tasks == "auto":
        names = tuple(catalog.shipped if model in SHIPPED_MODELS else catalog.included)
        if len(names) < 2:
            raise BadInput(
                f"an atlas compares tasks, and there are {len(names)} for this model: name two or "
                "more with --tasks T1,T2, or give --include-path DIR"
            )
        return names
    names = tuple(dict.fromkeys(requested(tasks)))
    if len(names) < 2:
        raise BadInput(
            f"--tasks names {len(names)} task{'s' * (len(names) != 1)}: an atlas compares tasks "
            "and needs two at least; for a single one use `broca localize`"
        )
    return names


def _notes(benchmarks: Mapping[str, Benchmark], matrix: Matrix, chart: Chart) -> list[str]:
    notes: list[str] = []
    for row, (name, benchmark) in enumerate(benchmarks.items()):
        notes += [*benchmark.notes, *cut_note(name, benchmark)]
        if not matrix.usable[row]:
            notes.append(f"{name} is at chance on the intact model: it can show no damage")
    if len(set(matrix.capabilities)) == 1:
        notes.append("all tasks are of one capability: selections have nothing to be compared with")
    if chart.found.shrunk:
        components = chart.masks.shape[1]
        notes.append(
            f"{len(chart.masks)} masks for {components} components are few: effects are smaller "
            f"than they are, and intervals cover the noise alone; about "
            f"{5 * components * len(chart.tasks):,} --rows would do"
        )
    return notes
