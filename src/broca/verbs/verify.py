"""`verify`: tests on held-out items whether a task needs some components and other tasks do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from broca.engine.ablation import ablations_of
from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions, takes_options, without
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.verification import Verification
from broca.runs import verb_steps
from broca.runs.claims import claim_of
from broca.runs.setup import named_heads, open_session, require_names
from broca.tasks import Task
from broca.verbs.localize import localize
from broca.verification import Scope, crossings_of


@takes_options
def verify(
    model: str | GatedModel | None = None,
    task: str | Task | None = None,
    heads: str | Sequence[str] | None = None,
    *,
    run: str | Path | Localization | None = None,
    neurons: str | Path | NeuronSet | None = None,
    order: Sequence[str] = (),
    others: str | Sequence[str | Task] = "auto",
    same_skill: str | Sequence[str | Task] = (),
    seed: int | None = None,
    both_ways: bool = False,
    limit: int | None = None,
    ablation: str | None = None,
    scope: Scope | None = None,
    run_options: Annotated[RunOptions, without("limit", "ablation")],
) -> Verification:
    """Tests the claim that a task needs a set of components and other tasks do not.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned; with `run`,
            its model by default.
        task: The task that the components are claimed for; with `run`, its task by default.
        heads: Names such as `L0H4`, as a list or joined by `+`, or a published list such as
            `published:llama-3.1-8b/gsm8k/css`.
        run: A localization or its out folder, whose selection is verified as the run was measured.
        neurons: Neurons to ablate too, as names, a result of `broca.neurons.locate` or its folder.
        order: Components in the order in which the curve ablates them; by default the ranking of
            the run, or `heads`.
        others: Tasks that should not suffer, as in `localize`; with `run`, its others by default.
        same_skill: Tasks of the same capability, in addition to those whose metadata say so.
        seed: Seed of the item split, the random sets and the resampling; default: the run's, or 0.
            The seed of the search excludes the items of the search from the verification.
        both_ways: Whether to localize every same-skill task too, and measure its heads on `task`.
        limit: Maximum number of report items of each task; all by default.
        ablation: Kind of ablation, as in `localize`; default: the run's, or zero.
        scope: Which tests are made, and on how many items; all by default.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    claim = claim_of(
        run, model=model, task=task, heads=heads, neurons=neurons, order=order, others=others,
        same_skill=same_skill, seed=seed, limit=limit, ablation=ablation,
        run_options=run_options,
    )  # fmt: skip
    scope = replace(scope or Scope(), seed=claim.seed)
    require_names(claim.heads)
    unloaded = [claim.others, claim.same_skill]
    with open_session(claim.model, claim.run_options, task=claim.task, others=unloaded) as opened:
        gated, stages = opened.model, opened.stages
        claim.require_weights(gated)
        names = named_heads(gated, claim.heads)
        tasks = claim.tasks(opened)
        measured = opened.run(
            tasks, ablation=claim.ablation, donors=tasks.located,
            settings=claim.settings(tasks, gated),
        )  # fmt: skip
        kinds = ablations_of(gated) if scope.curve else ()
        stages.expect(
            verb_steps.verification_steps(tasks, scope, names, claim.order or names, kinds)
        )
        search_options = SearchOptions(k=len(names))
        if both_ways:
            stages.expect(verb_steps.both_ways_steps(gated, tasks, search_options, seed=claim.seed))
        _, at_chance = opened.intact_scores(measured)
        examiner = measured.examiner(scope, kinds=kinds)
        verification = examiner.examine(names, order=claim.order, report=stages.enter)
        crossings = crossings_of(tasks.task, names, verification.roles("same_skill"))
        for other in tasks.same_skill if both_ways else ():
            selected = localize(
                gated, other, others=[], seed=claim.seed, verify=False,
                on_progress=stages.enter_verb(verb_steps.localizing_stage(other)),
                search_options=search_options,
                run_options=claim.run_options.within(opened.workspace),
            ).selected  # fmt: skip
            if selected:
                stages.enter(verb_steps.crossing_stage(other))
                crossed = examiner.drops_of(selected, [tasks.task])
                crossings += crossings_of(other, selected, crossed)
        rows = measured.scoring_rows
        measured.finish()
        task_notes = [note for name in tasks.benchmarks for note in tasks.notes_of(name)]
        return replace(
            verification, rows=rows, crossings=tuple(crossings), documents=tasks.documents,
            notes=(*tasks.notes, *task_notes, *at_chance),
        )  # fmt: skip
