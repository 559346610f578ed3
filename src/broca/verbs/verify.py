"""`verify_heads`: a claim on a set of heads, tested on held-out items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from broca.engine import Ablation, EngineOptions
from broca.engine.ablation import AblationKind
from broca.errors import BadInput
from broca.models import GatedModel, load
from broca.published import is_published, published_heads
from broca.results.verification import Crossing, TaskDrop, Verification
from broca.runs.provenance import evidence_of
from broca.runs.recording import Journaling, closes_journal, journaling
from broca.runs.task_sets import other_tasks, require_something_to_localize
from broca.runs.workbench import Report, Workbench, requested
from broca.tasks import Catalog, TaskOptions
from broca.verbs.localize import localize
from broca.verification import Scope


@closes_journal
def verify_heads(
    model: str | GatedModel,
    *,
    task: str,
    heads: str | Sequence[str],
    order: Sequence[str] = (),
    others: str | Sequence[str] = "auto",
    same_skill: str | Sequence[str] = (),
    include_path: str | Path | None = None,
    seed: int = 0,
    components: str = "heads",
    ablation: AblationKind = "zero",
    scale: float = 0.0,
    both_ways: bool = False,
    limit: int | None = None,
    scope: Scope | None = None,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    allow_pickle: bool = False,
    task_options: TaskOptions | None = None,
    allow_code: bool = False,
    engine_options: EngineOptions | None = None,
    journal: str | Path | Journaling | None = None,
    on_progress: Report | None = None,
) -> Verification:
    """Tests the claim that a task needs a set of heads, and that others do not.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task that the heads are claimed for.
        heads: Names such as `L0H4`, as a list or joined by `+`, or a published list such as
            `published:llama-3.1-8b/gsm8k/css`.
        order: All heads in the order in which the curve ablates them, such as a search's ranking;
            `heads` by default.
        others: Tasks that should not suffer, as in `localize`.
        same_skill: Tasks of the same capability; those that say so in their metadata are found.
        include_path: A folder of lm-eval YAML tasks to add.
        seed: Seed of the item split, the random sets and the resampling. Give the seed of the
            search: it keeps the items that the search saw out of the verification.
        components: Which parts can be ablated, if the model has yet to be loaded.
        ablation: What stands in for an ablated component.
        scale: The gate of an ablated component.
        both_ways: Whether to localize every same-skill task too, and measure its heads on `task`.
        limit: Most report items of each task; all by default.
        scope: How much is measured; everything by default.
        dtype: Number format of the weights, if the model has yet to be loaded.
        device: Device, if the model has yet to be loaded.
        device_map: `auto` spreads the model over devices, if it has yet to be loaded.
        allow_pickle: Whether weights in pickle format may be loaded.
        task_options: How the tasks are asked. Give those of the search, as its seed.
        allow_code: Whether tasks may run what the model writes; see docs/sandbox.md.
        engine_options: Size of batches and sharing of work.
        journal: File that keeps every measured row and is asked before anything is measured, such
            as the journal of the run; in memory if None.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    report: Report = on_progress or (lambda stage, progress: None)
    if limit is not None and limit < 8:
        raise BadInput(f"--limit must be at least 8 items, not {limit}")
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
    names = named_heads(model, heads)
    scope = replace(scope or Scope(), seed=seed)
    how = Ablation(ablation, scale, seed)
    report("building the tasks", None)
    bench = Workbench.build(
        model,
        task,
        same_skill=requested(same_skill),
        others=other_tasks(task, others, model.name, Catalog(include_path)),
        include_path=include_path,
        limit=limit,
        how=how,
        task_options=task_options,
        allow_code=allow_code,
        options=engine_options,
        keeping=journaling(journal),
        on_progress=on_progress,
    )
    kinds: tuple[AblationKind, ...] = get_args(AblationKind)
    if any(point.place == "routing" for point in model.points):
        kinds = ("zero",)
    examiner = bench.examiner(scope, kinds=kinds if scope.curve else ())
    benchmark, places = bench.benchmarks[task], bench.places[task]
    intact = examiner.trial.responses(
        examiner.execute, model.components.mask([])[None], {task: places}
    )
    require_something_to_localize(
        benchmark, examiner.trial.score(task, intact[task][0]), len(places)
    )
    examined = examiner.examine(names, order=order, report=bench.stage)
    crossings = [
        _crossing(task, one.task, names, one) for one in examined.drops if one.role == "same_skill"
    ]
    if both_ways:
        for other in bench.same_skill:
            found = localize(
                model,
                task=other,
                others=[],
                include_path=include_path,
                k=len(names),
                seed=seed,
                ablation=ablation,
                scale=scale,
                task_options=task_options,
                allow_code=allow_code,
                engine_options=engine_options,
                verify=False,
                journal=journal,
                on_progress=on_progress,
            ).selected
            if found:
                back = replace(examiner, scope=replace(scope, curve=0, controls=0))
                (drop,) = back.drops_of(found, [task])
                crossings.append(_crossing(other, task, found, drop))
    return evidence_of(
        model, task, names, how, scope, examined, bench.rows,
        crossings=crossings, notes=bench.notes(),
    )  # fmt: skip


def _crossing(found_on: str, measured_on: str, heads: Sequence[str], drop: TaskDrop) -> Crossing:
    return Crossing(found_on, measured_on, tuple(heads), drop.drop, drop.p)


def named_heads(model: GatedModel, heads: str | Sequence[str]) -> tuple[str, ...]:
    """The names as the model has them, in the order given; published lists are looked up."""
    if is_published(heads):
        assert isinstance(heads, str)
        heads = published_heads(heads, layers=model.structure.layers, heads=model.heads)
    columns = model.components.columns(heads)
    if not columns:
        raise BadInput("no heads are named: give --heads such as L0H4+L1H8")
    if len(set(columns)) < len(columns):
        raise BadInput(f"a head is named twice in --heads {heads}")
    return tuple(model.components.names[column] for column in columns)
