"""The whole path in one call: model, tasks, search, proof, result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from broca import searches
from broca.engine import (
    Ablation,
    EngineOptions,
    Progress,
    donor_activations,
    output_norms,
)
from broca.engine.ablation import AblationKind
from broca.errors import BadInput, NothingToLocalize, TaskUnusable
from broca.evidence import Crossing, Evidence
from broca.executors import RayOptions, with_references
from broca.files import write_beside
from broca.interactions import pairwise, require_count
from broca.models import SHIPPED_MODELS, GatedModel, load
from broca.plan import Response
from broca.result import (
    AblationInfo,
    AdditivityInfo,
    Cost,
    ModelInfo,
    Result,
    SearchInfo,
    Verification,
    ranked,
)
from broca.runs import (
    Journaling,
    RowProgress,
    closes_journal,
    engine_of,
    journaling,
    require_executor,
    shared_tokens,
)
from broca.searches import DEFAULT_METHOD, OtherTask, Problem, Ranking
from broca.tasks import Benchmark, Catalog, RequestTokenizer, Split, TaskOptions
from broca.tasks.paper import PAPER_GROUPS
from broca.verify import QUICK, Examination, Examiner, Remembered, Scope, Trial, prove, roles
from broca.verify.proof import scores_under

Report = Callable[[str, Progress | None], None]
"""Told what is going on: the stage, and how far it is where that is known."""


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
) -> Result:
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
        on_progress: Told what is going on.

    Returns:
        The result; `Result.to_json` gives `result.json`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    report = on_progress or (lambda stage, progress: None)
    how = Ablation(ablation, scale, seed)
    if response is not None and response not in get_args(Response):
        raise BadInput(f"--response '{response}' is unknown: use accuracy, margin or probability")
    if k < 1:
        raise BadInput(f"--k must be at least 1, not {k}")
    if rows is not None and rows < 1:
        raise BadInput(f"--rows must be at least 1, not {rows}")
    searches.require_options(method, options or {})
    written = {name: searches.written(value) for name, value in (options or {}).items()}
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
    names = tuple(
        dict.fromkeys((task, *same_skill, *other_tasks(task, others, model.name, catalog)))
    )
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    asked = task_options or TaskOptions()
    benchmarks = {
        name: catalog.load(
            name,
            tokenizer,
            metric=asked.metric if name == task else None,
            options=asked,
            require_split=name == task,
        )
        for name in names
    }
    _require_controls(task, benchmarks)
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    same, rest = roles(task, benchmarks, same_skill)
    bank, places = _bank((task, *rest), benchmarks, splits)
    reported, located = places["report"], places["locate"][task]

    stage = ["scoring the intact model"]
    donors = donor_activations(
        model, [bank[position][1].requests[0].context for position in located], how
    )
    shown = RowProgress(lambda progress: report(stage[0], progress))
    keeping = journaling(journal)
    engine = engine_of(
        executor,
        model,
        options=engine_options,
        donors=donors,
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
            "others": names[1:],
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
    intact = np.zeros(len(model.components), dtype=bool)
    before = scores_under(intact, benchmarks, reported, execute, bank)
    require_something_to_localize(benchmarks[task], before[task], len(reported[task]))

    contrast = searches.measures_others(method)
    tasks = (task, *rest) if contrast else (task,)
    left_out: tuple[str, ...] = ()
    continuous = False
    own = searches.RESPONSES.get(method, "accuracy")
    if (response or own) != "accuracy":
        stage[0] = "looking for right answers"
        wanted = [position for name in tasks for position in places["locate"][name]]
        try:
            referenced = with_references(engine, bank, wanted, components=len(model.components))
        except TaskUnusable as error:
            if response is not None or method in searches.GRADIENT_METHODS:
                raise
            left_out = (f"the search measures the tasks' own metrics: {error}",)
        else:
            bank, left_out, continuous = referenced.bank, referenced.notes, True
            kept = set(referenced.positions)
            places["locate"] = {
                name: [position for position in positions if position in kept]
                for name, positions in places["locate"].items()
            }
    returned: Response = response or (own if continuous else "accuracy")
    searched = recorder.local(bank, donors=located, response=returned, role="search")

    problem = Problem(
        components=len(model.components),
        items=np.asarray(places["locate"][task]),
        k=k,
        rows=rows,
        seed=seed,
        confirm=np.asarray(places["confirm"][task]),
        others=tuple(
            OtherTask(
                name,
                np.asarray(places["locate"][name], dtype=np.intp),
                np.asarray(places["confirm"][name], dtype=np.intp),
            )
            for name in tasks[1:]
        ),
        continuous=continuous and (contrast or response is None),
        differentiable=continuous,
        **shared_tokens([bank[position][1] for position in places["locate"][task]]),
    )
    search = searches.make_search(method, problem, **(options or {}))
    recorder.note_search(method, problem, written)
    stage[0] = f"searching ({method})"
    ranking = searches.run(search, searched.run)

    stage[0] = "verifying on the report items"
    selected = tuple(model.components.names[column] for column in ranking.selected)
    after = (
        scores_under(model.components.mask(selected), benchmarks, reported, execute, bank)
        if selected
        else dict(before)
    )
    proof = prove(task, benchmarks, before, after, same_skill=same)
    evidence = None
    if verify and selected:
        examiner = Examiner(
            Trial(
                task,
                same,
                rest,
                benchmarks,
                {name: np.asarray(positions) for name, positions in reported.items()},
                [item for _, item in bank],
            ),
            model.components,
            execute,
            scored.answers,
            [item for _, item in bank],
            output_norms(model, [bank[position][1].requests[0].context for position in located]),
            {},
            replace(QUICK, seed=seed),
        )
        examined = examiner.examine(selected, report=lambda text: stage.__setitem__(0, text))
        evidence = evidence_of(model, task, selected, how, QUICK, examined, scored.rows)
    stage[0] = "measuring pairs"
    pairs = pairwise(model.components.names, ranking.order[:interactions], problem.confirm, execute)
    measured, tokens = recorder.finish()
    return Result(
        broca=version_of_broca(),
        model=model_info(model),
        task=task,
        others=rest,
        same_skill=same,
        evidence=evidence,
        search=SearchInfo(method, ranking.options, seed),
        cost=Cost(
            rows=searched.rows,
            verification_rows=scored.rows,
            tokens=tokens,
            wall_s=round(time.perf_counter() - start, 3),
            measured=measured,
        ),
        baseline=before,
        ranking=ranked(model.components, ranking.effects, ranking.order, **ranking.details),
        interactions=pairs,
        off_target_effects=_off_target_effects(model, ranking),
        universal=tuple(model.components.names[column] for column in ranking.universal),
        selected=selected,
        abstained=not selected,
        reason=ranking.reason,
        verification=Verification(
            after=proof.after,
            drop=proof.drop,
            off_target_drop=proof.off_target_drop,
            specific_drop=proof.specific_drop,
            items={name: len(positions) for name, positions in reported.items()},
        ),
        response=returned,
        components=model.kinds,
        ablation=AblationInfo(how.kind, how.scale),
        metrics={name: one.metric for name, one in benchmarks.items()},
        task_options=asked.to_dict(),
        notes=(*_notes(task, benchmarks, before, reported), *left_out, *_found(model, ranking)),
        additivity=None
        if ranking.additivity is None
        else AdditivityInfo(**asdict(ranking.additivity)),
    )


def evidence_of(
    model: GatedModel,
    task: str,
    heads: Sequence[str],
    how: Ablation,
    scope: Scope,
    examined: Examination,
    rows: int,
    *,
    crossings: Sequence[Crossing] = (),
    notes: Sequence[str] = (),
) -> Evidence:
    """Puts what was measured and what it was measured on into one record."""
    return Evidence(
        model=model.name,
        fingerprint=model.fingerprint,
        task=task,
        heads=tuple(heads),
        ablation=how.kind,
        scale=how.scale,
        seed=how.seed,
        level=scope.level,
        **{one.name: getattr(examined, one.name) for one in fields(examined)},
        crossings=tuple(crossings),
        rows=rows,
        notes=tuple(notes),
        broca=version_of_broca(),
    )


def check_out_folder(out: str | Path) -> Path:
    """Makes the out folder and proves that it can be written, before anything is measured.

    Raises:
        BadInput: It cannot be made or written.
    """
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".broca-write-test"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        raise BadInput(
            f"--out '{out}' cannot be written ({error.strerror}): choose another folder"
        ) from error
    return folder


def save(result: Result, out: str | Path) -> tuple[Path, Path]:
    """Writes `result.json` and `report.html`, each beside its place and then renamed.

    Returns:
        The two paths.

    Raises:
        BadInput: The folder cannot be written.
    """
    from broca.report import render_html

    folder = check_out_folder(out)
    paths = (folder / "result.json", folder / "report.html")
    for path, text in zip(paths, (result.to_json(), render_html(result)), strict=True):
        write_beside(path, text)
    return paths


def other_tasks(
    task: str, others: str | Sequence[str], model: str, catalog: Catalog
) -> tuple[str, ...]:
    """Resolves `others` to task names, the task itself excluded."""
    if isinstance(others, str):
        if others != "auto":
            names: Sequence[str] = [name.strip() for name in others.split(",") if name.strip()]
        else:
            names = catalog.shipped if model in SHIPPED_MODELS else catalog.included
    else:
        names = others
    if isinstance(others, str) and others != "auto" and task in names:
        raise BadInput(f"task '{task}' is also named in --others: a task is no control of itself")
    members = [member for name in names for member in PAPER_GROUPS.get(name, (name,))]
    return tuple(dict.fromkeys(name for name in members if name != task))


def _require_controls(task: str, benchmarks: Mapping[str, Benchmark]) -> None:
    """Refuses another task that shares a task with the localized group."""
    own = set(benchmarks[task].task_names)
    for name, one in benchmarks.items():
        shared = own & set(one.task_names)
        if name != task and shared:
            raise BadInput(
                f"--others: '{name}' shares {', '.join(sorted(shared)[:3])} with '{task}': a task "
                "is no control of itself"
            )


def _bank(
    searched: Sequence[str], benchmarks: Mapping[str, Benchmark], splits: Mapping[str, Split]
) -> tuple[list[tuple[Benchmark, Any]], dict[str, dict[str, list[int]]]]:
    """Lays out the items of a run: every task's report items, then those of the search.

    Args:
        searched: The tasks that a search may measure, the localized one first.
        benchmarks: All tasks by name.
        splits: Their items.

    Returns:
        The bank, and for `report`, `locate` and `confirm` each task's positions in it.
    """
    bank: list[tuple[Benchmark, Any]] = []

    def place(name: str, numbers: Sequence[int]) -> list[int]:
        first = len(bank)
        bank.extend((benchmarks[name], benchmarks[name].items[number]) for number in numbers)
        return list(range(first, len(bank)))

    return bank, {
        "report": {name: place(name, splits[name].report) for name in benchmarks},
        "locate": {name: place(name, splits[name].locate) for name in searched},
        "confirm": {name: place(name, splits[name].confirm) for name in searched},
    }


def require_something_to_localize(benchmark: Benchmark, score: float, items: int) -> None:
    """Refuses a task that the intact model does not do.

    Raises:
        NothingToLocalize: It scores no better than guessing.
    """
    if benchmark.at_chance(score, items=items):
        guess = f"guessing gives {benchmark.chance:.2f}" if benchmark.chance else "that is nothing"
        raise NothingToLocalize(
            f"the intact model scores {score:.3f} on '{benchmark.name}' ({benchmark.metric}, "
            f"{items} items) and {guess}: there is nothing to localize; choose a task that the "
            "model can do"
        )


def _notes(
    task: str,
    benchmarks: Mapping[str, Benchmark],
    before: Mapping[str, float],
    reported: Mapping[str, Sequence[int]],
) -> tuple[str, ...]:
    notes: list[str] = []
    for name, benchmark in benchmarks.items():
        notes += benchmark.notes
        if benchmark.cut_items:
            notes.append(
                f"{benchmark.cut_items} of {len(benchmark.items)} prompts of {name} were cut from "
                "the left to fit the model's context"
            )
        if name != task and benchmark.capability == benchmarks[task].capability:
            notes.append(
                f"{name} measures the same capability ({benchmark.capability}) as {task}: it is "
                "reported apart, and what it loses is no off-target drop"
            )
        if name != task and benchmark.at_chance(before[name], items=len(reported[name])):
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


def model_info(model: GatedModel) -> ModelInfo:
    """What results say of a model."""
    return ModelInfo(
        name=model.name,
        fingerprint=model.fingerprint,
        architecture=model.architecture,
        layers=model.structure.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        dtype=model.dtype,
    )


def version_of_broca() -> str:
    """The version that results name."""
    from importlib.metadata import version

    return version("broca")
