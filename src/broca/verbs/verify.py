"""`verify`: tests on held-out items whether a task needs some components and other tasks do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from broca.engine.ablation import ablations_of
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options, without
from broca.results.verification import Crossing, Verification
from broca.runs import verb_steps
from broca.runs.progress import Report
from broca.runs.provenance import model_info, verification_of
from broca.runs.setup import ablation_of, named_heads, open_session, require_names
from broca.tasks import Task
from broca.verbs.localize import localize
from broca.verification import Scope

LOCATED = 100
"""Maximum number of `locate` items, from which donors and output norms are computed."""


@takes_options
def verify(
    model: str | GatedModel,
    task: str | Task,
    heads: str | Sequence[str],
    *,
    order: Sequence[str] = (),
    others: str | Sequence[str | Task] = "auto",
    same_skill: str | Sequence[str | Task] = (),
    seed: int = 0,
    both_ways: bool = False,
    limit: int | None = None,
    scope: Scope | None = None,
    on_progress: Report | None = None,
    run_options: Annotated[RunOptions, without("limit")],
) -> Verification:
    """Tests the claim that a task needs a set of components and other tasks do not.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: The task that the components are claimed for.
        heads: Names such as `L0H4`, as a list or joined by `+`, or a published list such as
            `published:llama-3.1-8b/gsm8k/css`.
        order: Components in the order in which the curve ablates them, such as a search's ranking;
            `heads` by default.
        others: Tasks that should not suffer, as in `localize`.
        same_skill: Tasks of the same capability, in addition to those whose metadata say so.
        seed: Seed of the item split, the random sets and the resampling. Give the seed of the
            search: it excludes the items of the search from the verification.
        both_ways: Whether to localize every same-skill task too, and measure its heads on `task`.
        limit: Maximum number of report items of each task; all by default.
        scope: Which tests are made, and on how many items; all by default.
        on_progress: Receives the current stage and the progress of the run.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    if limit is not None and limit < 8:
        raise BadInput(f"`limit` must be at least 8 items, not {limit}")
    scope = replace(scope or Scope(), seed=seed)
    ablation = ablation_of(run_options.ablation_options, seed)
    require_names(heads)
    with open_session(
        model, run_options, on_progress, task=task, others=[others, same_skill]
    ) as opened:
        gated, stages = opened.model, opened.stages
        names = named_heads(gated, heads)
        tasks = opened.claimed(
            task, others=others, same_skill=same_skill, items=LOCATED, seed=seed, limit=limit,
            searched="task",
        )  # fmt: skip
        run = opened.run(
            tasks,
            ablation=ablation,
            donors=tasks.located,
            settings={
                "measures": tasks.task, "others": [*tasks.same_skill, *tasks.others],
                "ablation": [ablation.kind, ablation.scale], "components": gated.kinds,
                "seed": seed,
            },
        )  # fmt: skip
        kinds = ablations_of(gated) if scope.curve else ()
        stages.expect(verb_steps.verification_steps(tasks, scope, names, order or names, kinds))
        search_options = SearchOptions(k=len(names))
        if both_ways:
            stages.expect(verb_steps.both_ways_steps(gated, tasks, search_options, seed=seed))
        _, at_chance = opened.intact_scores(run)
        examiner = run.examiner(scope, kinds=kinds)
        examination = examiner.examine(names, order=order, report=stages.enter)
        crossings = [
            Crossing(tasks.task, drop.task, tuple(names), drop.drop, drop.p)
            for drop in examination.drops
            if drop.role == "same_skill"
        ]
        for other in tasks.same_skill if both_ways else ():
            selected = localize(
                gated, other, others=[], seed=seed, verify=False,
                on_progress=stages.enter_verb(verb_steps.localizing_stage(other)),
                search_options=search_options,
                run_options=run_options.within(opened.workspace),
            ).selected  # fmt: skip
            if selected:
                stages.enter(verb_steps.crossing_stage(other))
                (drop,) = examiner.drops_of(selected, [tasks.task])
                crossings.append(Crossing(other, tasks.task, selected, drop.drop, drop.p))
        rows = run.scoring_rows
        run.finish()
        task_notes = [note for name in tasks.benchmarks for note in tasks.notes_of(name)]
        return verification_of(
            model_info(gated), names, ablation, examiner.trial, examination.before,
            examination.after, examination=examination, level=scope.level, rows=rows,
            crossings=crossings, documents=tasks.documents,
            notes=[*tasks.notes, *task_notes, *at_chance],
        )  # fmt: skip
