"""The whole path in one call: model, tasks, search, proof, result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

from broca import searches
from broca.engine import Ablation, EngineOptions, donor_activations, output_norms
from broca.engine.ablation import AblationKind
from broca.errors import BadInput
from broca.executors import RayOptions
from broca.measurement import Response
from broca.models import GatedModel, load
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import (
    AblationInfo,
    AdditivityInfo,
    Cost,
    HeldOutScores,
    Localization,
    SearchInfo,
    ranked,
)
from broca.runs.provenance import evidence_of, model_info, version_of_broca
from broca.runs.recording import (
    Journaling,
    RowProgress,
    closes_journal,
    engine_of,
    journaling,
    require_executor,
    shared_tokens,
)
from broca.runs.references import with_margins
from broca.runs.task_sets import (
    Bank,
    Part,
    Places,
    cut_note,
    lay_out,
    load_tasks,
    other_tasks,
    require_controls,
    require_something_to_localize,
)
from broca.runs.workbench import Report, Stage
from broca.searches import DEFAULT_METHOD, OtherTask, Problem, Ranking
from broca.tasks import Benchmark, Catalog, TaskOptions
from broca.verification import QUICK, Examiner, Remembered, Trial, prove, roles
from broca.verification.interactions import pairwise, require_count
from broca.verification.proof import scores_under
from broca.verification.universal import ablate_alone


@closes_journal
def localize(
    model: str | GatedModel,
    *,
    task: str,
    others: str | Sequence[str] = "auto",
    same_skill: Sequence[str] = (),
    include_path: str | Path | None = None,
    method: str = DEFAULT_METHOD,
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
    executor: str | RayOptions = "local",
    allow_pickle: bool = False,
    allow_code: bool = False,
    task_options: TaskOptions | None = None,
    engine_options: EngineOptions | None = None,
    options: Mapping[str, Any] | None = None,
    verify: bool = True,
    interactions: int = 0,
    journal: str | Path | Journaling | None = None,
    on_progress: Report | None = None,
) -> Localization:
    """Finds the heads that a task needs and proves them on held-out items.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task to localize: shipped, in `include_path`, or any of lm-eval.
        others: Tasks that the heads should leave alone. `auto`: all other shipped tasks for a
            shipped model, else all tasks of `include_path`, else none; `general` stands for the
            four tasks of the paper's group. Those whose metadata state the capability of `task`
            are reported apart, as `same_skill`.
        same_skill: More tasks of the same capability.
        include_path: A folder of lm-eval YAML tasks to add.
        method: Search method, a key of `broca.searches.METHODS`.
        rows: Most (mask, item) rows to spend on the search; by default what the method needs.
        k: Most heads to select.
        items: Most items to search on.
        seed: Seed of the item split, the masks, and everything else that is random.
        components: Which parts can be ablated, such as `heads` or `heads+mlp`, if the model has yet
            to be loaded.
        response: What the search measures: `accuracy` (the task's metric) or `margin`. The proof
            is always in the task's metric.
        ablation: What stands in for an ablated component: `zero`, `mean` or `resample`.
        scale: The gate of an ablated component; 0 ablates, other values scale.
        dtype: Number format of the weights, if the model has yet to be loaded.
        device: Device, if the model has yet to be loaded.
        device_map: `auto` spreads the model over devices, if it has yet to be loaded.
        executor: Where rows are measured: `local`, in this process, or `ray`, in workers that load
            the model by its name; `RayOptions` says where they are and how many.
        allow_pickle: Whether weights in pickle format may be loaded.
        allow_code: Whether tasks such as mbpp may execute what the model writes, in a sandbox.
        task_options: How the tasks are asked: examples, templates, limits, splits, metric of the
            task, reference of its margin.
        engine_options: Size of batches and sharing of work.
        options: Settings of the method, such as `recovery`: a name, or a scikit-learn regressor.
        verify: Whether to end with statistics, random sets and a verdict (`broca verify` measures
            more of them).
        interactions: How many leading heads, the selected ones first, to measure in pairs on the
            task's `confirm` items; 0 for none.
        journal: File that keeps every measured row and is asked before anything is measured; in
            memory if None.
        on_progress: Receives what is going on.

    Returns:
        The result; `Localization.to_json` gives `result.json`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    report = on_progress or (lambda stage, progress: None)
    how = Ablation(ablation, scale, seed)
    options = options or {}
    _require_sense(method, options, response=response, k=k, rows=rows)
    written = {name: searches.written(value) for name, value in options.items()}
    require_executor(executor)
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
    if k > len(model.components):
        raise BadInput(
            f"--k {k} is more than the {len(model.components)} {model.kinds} of the model"
        )
    require_count(interactions, len(model.components))

    start = time.perf_counter()
    report("building the tasks", None)
    catalog = Catalog(include_path, allow_code=allow_code)
    asked = task_options or TaskOptions()
    names = (task, *same_skill, *other_tasks(task, others, model.name, catalog))
    benchmarks = load_tasks(model, names, catalog, task=task, options=asked)
    require_controls(task, benchmarks)
    trial, bank, places = _laid_out(task, benchmarks, same_skill, items=items, seed=seed)
    located = places["locate"][task].tolist()
    prompts = [bank[position][1].requests[0].context for position in located]
    _require_search(method, options, trial, places, len(model.components), k=k, rows=rows)

    stage = Stage(report, "scoring the intact model")
    shown = RowProgress(stage.tell)
    keeping = journaling(journal)
    engine = engine_of(
        executor,
        model,
        options=engine_options,
        donors=donor_activations(model, prompts, how),
        device_map=device_map,
        allow_pickle=allow_pickle,
        kept=keeping,
        progress=shown,
    )
    recorder = keeping.begin(
        model=model,
        bank=bank,
        engine=engine,
        ablation=how,
        donors=located,
        settings={
            "task": task,
            "others": tuple(benchmarks)[1:],
            "same_skill": list(same_skill),
            "method": method,
            "options": written,
            "rows": rows,
            "k": k,
            "items": items,
            "seed": seed,
            "response": response,
            "ablation": [ablation, scale],
            "components": model.kinds,
            "task_options": asked.to_dict(),
            "interactions": interactions,
        },
        progress=shown,
    )
    scored = recorder.local(bank, donors=located)
    execute = Remembered(scored.run)
    before = scores_under(model.components.mask(()), benchmarks, trial.places, execute, bank)
    require_something_to_localize(benchmarks[task], before[task], len(trial.places[task]))

    stage.enter("looking for right answers")
    measured = (task, *trial.others) if searches.measures_others(method) else (task,)
    accuracy_will_do = response is None and method not in searches.GRADIENT_METHODS
    asking = with_margins(
        response or searches.RESPONSES.get(method, "accuracy"),
        engine,
        bank,
        {name: places["locate"][name] for name in measured},
        components=len(model.components),
        otherwise="the search measures the tasks' own metrics" if accuracy_will_do else None,
    )
    searched = recorder.local(asking.bank, donors=located, response=asking.response, role="search")
    own, *beside = (
        OtherTask(name, asking.places[name], places["confirm"][name]) for name in measured
    )
    problem = Problem(
        components=len(model.components),
        items=own.items,
        k=k,
        rows=rows,
        seed=seed,
        confirm=own.confirm,
        others=tuple(beside),
        continuous=asking.continuous and (len(measured) > 1 or response is None),
        differentiable=asking.continuous and model.differentiable,
        **shared_tokens([bank[position][1] for position in own.items]),
    )
    search = searches.make_search(method, problem, **options)
    recorder.note_search(method, problem, written)
    stage.enter(f"searching ({method})")
    ranking = searches.run(search, searched.run)

    stage.enter("verifying on the report items")
    selected = tuple(model.components.names[column] for column in ranking.selected)
    after = scores_under(model.components.mask(selected), benchmarks, trial.places, execute, bank)
    proof = prove(task, benchmarks, before, after, same_skill=trial.same_skill)
    evidence = None
    if verify and selected:
        examiner = Examiner(
            trial=trial,
            components=model.components,
            execute=execute,
            answer=scored.answers,
            items=trial.items,
            norms=output_norms(model, prompts),
            kinds={},
            scope=replace(QUICK, seed=seed),
        )
        examined = examiner.examine(selected, report=stage.enter)
        evidence = evidence_of(model, task, selected, how, QUICK, examined, scored.rows)
    if ranking.universal:
        stage.enter("measuring alone what the others need too")
    shared = ablate_alone(ranking.universal, model.components, trial, execute, before, seed=seed)
    stage.enter("measuring pairs")
    pairs = pairwise(model.components.names, ranking.order[:interactions], problem.confirm, execute)
    rows_measured, tokens = recorder.finish()
    return Localization(
        broca=version_of_broca(),
        model=model_info(model),
        task=task,
        others=trial.others,
        same_skill=trial.same_skill,
        evidence=evidence,
        search=SearchInfo(method, ranking.options, seed),
        cost=Cost(
            rows=searched.rows,
            verification_rows=scored.rows,
            tokens=tokens,
            wall_s=round(time.perf_counter() - start, 3),
            measured=rows_measured,
        ),
        baseline=before,
        ranking=ranked(model.components, ranking.effects, ranking.order, **ranking.details),
        interactions=pairs,
        off_target_effects=_off_target_effects(model, ranking),
        shared_effects=shared.effects,
        universal=shared.universal,
        selected=selected,
        abstained=not selected,
        reason=ranking.reason,
        verification=HeldOutScores(
            after=proof.after,
            drop=proof.drop,
            off_target_drop=proof.off_target_drop,
            specific_drop=proof.specific_drop,
            items={name: len(positions) for name, positions in trial.places.items()},
        ),
        response=asking.response,
        components=model.kinds,
        ablation=AblationInfo(how.kind, how.scale),
        metrics={name: one.metric for name, one in benchmarks.items()},
        task_options=asked.to_dict(),
        notes=(*_notes(trial, before), *asking.notes, *_found(model, ranking)),
        additivity=None
        if ranking.additivity is None
        else AdditivityInfo(**asdict(ranking.additivity)),
    )


def _require_sense(
    method: str,
    options: Mapping[str, Any],
    *,
    response: Response | None,
    k: int,
    rows: int | None,
) -> None:
    """Refuses what no model is needed to refuse."""
    if response is not None and response not in get_args(Response):
        raise BadInput(f"--response '{response}' is unknown: use accuracy, margin or probability")
    if k < 1:
        raise BadInput(f"--k must be at least 1, not {k}")
    if rows is not None and rows < 1:
        raise BadInput(f"--rows must be at least 1, not {rows}")
    searches.require_options(method, options)


def _require_search(
    method: str,
    options: Mapping[str, Any],
    trial: Trial,
    places: Mapping[Part, Places],
    components: int,
    *,
    k: int,
    rows: int | None,
) -> None:
    """Refuses a budget or options that the method would refuse, before anything is measured.

    What only measuring shows, such as whether every item has a margin, is taken for the best.
    """
    own, *beside = (
        OtherTask(name, places["locate"][name], places["confirm"][name])
        for name in (trial.task, *(trial.others if searches.measures_others(method) else ()))
    )
    problem = Problem(
        components,
        own.items,
        k,
        rows,
        seed=0,
        confirm=own.confirm,
        others=tuple(beside),
        continuous=True,
        differentiable=True,
    )
    searches.make_search(method, problem, **options)


def _laid_out(
    task: str,
    benchmarks: Mapping[str, Benchmark],
    same_skill: Sequence[str],
    *,
    items: int,
    seed: int,
) -> tuple[Trial, Bank, dict[Part, Places]]:
    """Cuts the tasks' items and puts those that a run needs into one bank.

    Returns:
        The tasks with their report items, the bank, and where each part of the items lies in it.
    """
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    same, rest = roles(task, benchmarks, same_skill)
    searchable = (task, *rest)
    parts: dict[Part, Sequence[str]] = {
        "report": tuple(benchmarks), "locate": searchable, "confirm": searchable,
    }  # fmt: skip
    bank, places = lay_out(benchmarks, splits, parts)
    items_of_bank = [item for _, item in bank]
    return Trial(task, same, rest, benchmarks, places["report"], items_of_bank), bank, places


def save(result: Localization, out: str | Path) -> tuple[Path, Path]:
    """Writes `result.json` and `report.html`, each beside its place and then renamed.

    Returns:
        The two paths.

    Raises:
        BadInput: The folder cannot be written.
    """
    from broca.reports import render_html

    folder = check_out_folder(out)
    paths = (folder / "result.json", folder / "report.html")
    for path, text in zip(paths, (result.to_json(), render_html(result)), strict=True):
        write_beside(path, text)
    return paths


def _notes(trial: Trial, before: Mapping[str, float]) -> tuple[str, ...]:
    """What the reader should know of the tasks."""
    notes: list[str] = []
    own = trial.benchmarks[trial.task].capability
    for name, benchmark in trial.benchmarks.items():
        notes += [*benchmark.notes, *cut_note(name, benchmark)]
        if name == trial.task:
            continue
        if benchmark.capability == own:
            notes.append(
                f"{name} measures the same capability ({own}) as {trial.task}: it is reported "
                "apart, and what it loses is no off-target drop"
            )
        if benchmark.at_chance(before[name], items=len(trial.places[name])):
            notes.append(f"{name} is at chance on the intact model: it can show no damage")
    return tuple(notes)


def _found(model: GatedModel, ranking: Ranking) -> tuple[str, ...]:
    """What the method wants said: its notes, and the components that it tells apart."""
    names = model.components.names
    groups = (
        f"{name}: {', '.join(names[column] for column in columns) or 'none'}"
        for name, columns in ranking.groups.items()
    )
    return (*ranking.notes, *groups)


def _off_target_effects(model: GatedModel, ranking: Ranking) -> dict[str, float]:
    if ranking.others is None:
        return {}
    return {
        model.components.names[column]: float(ranking.others[column]) for column in ranking.order
    }
