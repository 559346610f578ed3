"""`verify`: tests on held-out items whether a task needs some components and other tasks do not."""

from __future__ import annotations

import os
from dataclasses import replace

from broca.components import components_in
from broca.engine.ablation import ablations_of
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import AblationOptions, ModelOptions, TaskOptions, VerifyOptions, verb
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.verification import Verification, places_in
from broca.runs import session
from broca.runs.alternatives import alone, places_alone
from broca.runs.folder import options_of_run, with_recorded
from broca.tasks import listed
from broca.verification import Scope, fitting, most_rows

LOCATED = 100
"""Maximum number of `locate` items, from which donors and output norms are computed."""


@verb(VerifyOptions)
def verify(options: VerifyOptions) -> Verification:
    """Tests the claim that a task needs a set of components and other tasks do not.

    Without `heads` and `neurons`, `target` is a localization or its out folder, whose selection is
    verified as the run was measured; its seed excludes the items of the search.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    options, found = claim_of(options)
    run_options, seed = options.run_options, options.seed or 0
    names = session.require_names(options.heads)
    ablation = session.ablation_of(run_options.ablation_options, seed)
    with session.open_run(
        options.target, run_options, task=options.task, others=[options.others, options.same_skill],
    ) as opened:  # fmt: skip
        gated, stages = opened.model, opened.stages
        claim = found or options.neurons
        weights = claim.model.fingerprint if isinstance(claim, Localization | NeuronSet) else ""
        gated.require_measured(weights, of="the run", advice="give the model of the run")
        names = session.named_heads(gated, names)
        rows = options.rows // (1 + options.enough)
        tasks = opened.claimed(
            options.task, others=options.others, same_skill=options.same_skill, items=LOCATED,
            seed=seed, limit=options.limit, searched="task",
            report_items=None if options.scope else rows // 30,
            seen=() if found is None or seed == found.search.seed else found.verification.documents,
        )  # fmt: skip
        kinds = ablations_of(gated) if options.scope is None or options.scope.ablations else ()
        size = {"members": len(names), "kinds": len({*kinds} - {ablation.kind})}
        if options.scope is None:
            scope = Scope(controls=options.controls, seed=seed)
            tasks = tasks.within(rows, lambda trial: fitting(trial, scope, rows, **size)[1])
            scope, proof = fitting(tasks.trial(), scope, rows, **size)
        else:
            scope = replace(options.scope, seed=seed)
            proof = most_rows(tasks.trial(), scope, **size)
        settings = {
            "measures": tasks.task,
            "others": [*tasks.same_skill, *tasks.others],
            "ablation": [ablation.kind, ablation.scale],
            "components": gated.kinds,
            "seed": seed,
            **({"enough": True} if options.enough else {}),
        }
        run = opened.on(tasks, settings=settings, ablation=ablation, donors=tasks.located)
        before = None if found is None else found.digests.get("documents")
        same = before == run.digests["documents"]
        if found is not None and (
            (before and same != (tasks.task == found.task))
            # an earlier version may have cut the items otherwise
            or (
                seed == found.search.seed
                and places_in(tasks.documents, "report")
                & places_in(found.verification.documents, "confirm")
            )
        ):
            raise BadInput(
                f"items that the run searched on may be among those of task '{tasks.task}': its "
                f"name, data or options, or broca's version, are not the run's ('{found.task}'); "
                "give these, or `heads`"
            )
        changed = found is not None and same and found.digests["task"] != run.digests["task"]
        places, more = None, 0
        if options.enough:
            places, more = places_alone(run, names, rows=rows)
            if places is None:
                raise BadInput(
                    f"`enough` needs {2 * more:,} rows here, half of them for what the set does "
                    "alone: give as many `rows`, or leave it out"
                )
        proof += more
        stages.note(f"at most {proof:,} rows")
        stages.expect(proof + sum(map(len, tasks.places["report"].values())))
        _, at_chance = run.intact()
        examiner = run.examiner(scope, kinds=kinds)
        with stages.reserved(proof):
            verification = examiner.examine(names, report=stages.enter)
            if places is not None:
                ranking = () if found is None else [line.name for line in found.ranking]
                enough = alone(run, verification, scope, places=places, ranking=ranking)
                verification = replace(verification, enough=enough)
        measured = run.scoring_rows + run.search_rows
        run.finish()
        task_notes = [note for name in tasks.benchmarks for note in tasks.notes_of(name)]
        if changed:
            task_notes.append(
                f"task '{tasks.task}' is defined otherwise than in the run: its prompt, metric or "
                "options, or the version of lm-eval, changed"
            )
        return replace(
            verification, rows=measured, documents=tasks.documents,
            task_options=opened.options.task_options.to_dict(),
            notes=(*tasks.notes, *task_notes, *at_chance),
        )  # fmt: skip


def claim_of(options: VerifyOptions) -> tuple[VerifyOptions, Localization | None]:
    """Completes the options of a call by those of the run whose claim they verify.

    Returns:
        The options, in which the model is `target`, and task, heads, seed and ablation are known;
        and the run that made the claim, None if the user names components.

    Raises:
        BadInput: The task is missing, or the run or the neurons selected nothing.
    """
    target, run_options = options.target, options.run_options
    options = replace(options, same_skill=listed(options.same_skill))
    if options.heads is not None or options.neurons is not None:
        if isinstance(target, Localization) or session.is_run(target):
            raise BadInput(
                "the run names the components that it selected: leave out `heads` and `neurons`, "
                "or give a model"
            )
        if options.model is not None:
            raise BadInput("`model` replaces that of a run: with `heads`, give the model itself")
        if options.task is None:
            raise BadInput("`heads` and `neurons` need the `task` for which they are claimed")
        if options.heads is not None:
            options = replace(options, heads=session.model_and_heads(target, options.heads)[1])
        return _ablated(options if options.neurons is None else _with_neurons(options)), None
    if isinstance(target, GatedModel):
        raise BadInput("nothing to verify: give the out folder of a run, or name `heads`")
    found = target if isinstance(target, Localization) else Localization.read(target)
    if not found.selected:
        place = "" if isinstance(target, Localization) else f" in '{target}'"
        raise BadInput(
            f"the run{place} selected nothing: there is nothing to verify; name some in `heads`"
        )
    given = run_options.model_options.components
    if given not in (ModelOptions().components, found.components):
        raise BadInput(f"the run selected {found.components}, not {given}: leave `components` out")
    ablation = AblationOptions(ablation=found.ablation.kind, scale=found.ablation.scale)
    run_options = replace(
        run_options,
        task_options=with_recorded(run_options.task_options, TaskOptions.of(found.task_options)),
        ablation_options=with_recorded(run_options.ablation_options, ablation),
    )
    if not isinstance(target, Localization):
        run_options = options_of_run(target, run_options)
    claimed = {
        "target": options.model or found.model.name,
        "task": options.task or found.task,
        "heads": found.selected,
        "components": found.components,
        "others": list(found.others) if options.others == "auto" else options.others,
        "same_skill": [*(found.same_skill if options.task is None else ()), *options.same_skill],
        "seed": found.search.seed if options.seed is None else options.seed,
        "run_options": run_options,
    }
    return _ablated(VerifyOptions.of(claimed, options)), found


def _ablated(options: VerifyOptions) -> VerifyOptions:
    """Returns the options with the kind and scale of ablation of the call, if they are given."""
    given = {"ablation": options.ablation, "scale": options.scale}
    given = {name: value for name, value in given.items() if value is not None}
    ablation = AblationOptions.of(given, options.run_options.ablation_options)
    return replace(options, run_options=replace(options.run_options, ablation_options=ablation))


def _with_neurons(options: VerifyOptions) -> VerifyOptions:
    """Returns the options with heads and neurons as one list of names, and the kinds of both.

    A located set gives its seed and task options, which cut the items: what it was located on is
    not reported on.
    """
    heads, neurons = options.heads, options.neurons
    if isinstance(neurons, str) and os.path.exists(os.path.expanduser(neurons)):
        neurons = NeuronSet.read(neurons)
    if isinstance(neurons, NeuronSet):
        if not neurons.selected:
            place = f" '{options.neurons}'" if isinstance(options.neurons, str) else ""
            raise BadInput(f"`neurons`{place} selected no neuron: there is nothing to verify")
        seed = neurons.settings["seed"]
        if options.seed not in (None, seed):
            raise BadInput(
                f"the neurons were located with seed {seed}, which cuts their items: leave `seed` "
                "out, or list the neurons"
            )
        asked = TaskOptions.of(neurons.settings.get("task_options", {}))
        asked = with_recorded(options.run_options.task_options, asked)
        located = {"seed": seed, "task_options": asked, "neurons": neurons}
        options = VerifyOptions.of(located, options)
    named = components_in(neurons)
    kinds = []
    if heads is not None:
        named = [*components_in(heads), *named]
        kinds = [k.strip() for k in options.run_options.model_options.components.split("+")]
    components = "+".join([*(kind for kind in kinds if kind != "neurons"), "neurons"])
    names = "+".join(component.name for component in named)
    return VerifyOptions.of({"heads": names, "components": components}, options)
