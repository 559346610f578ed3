"""`export`: writes a model without some components in forms that other libraries load."""

from __future__ import annotations

from dataclasses import replace

from broca import exports
from broca.engine import Ablation
from broca.exports import ExportRequest, Origin
from broca.options import ExportOptions, RunOptions, verb
from broca.results.export import BaseModel, Export
from broca.runs.progress import Stages
from broca.runs.run import model_info
from broca.runs.session import open_run


@verb(ExportOptions)
def export(options: ExportOptions) -> Export:
    """Exports a model without some components, and checks the export with other libraries.

    Returns:
        A record of the files and the checks; the folder also contains it, and a model card.

    Raises:
        BrocaError: Bad input, or the ablation cannot be exported exactly, in one line that says
            what to do.
        SelfTestFailed: The export does not equal the ablated model; its files are removed.
    """
    kind = options.kind
    run_options: RunOptions = options.run_options
    request = ExportRequest.of(options.target, options.heads, kind, options.scale)
    if kind == "adapter":
        exports.require_peft()
    checked = exports.checked_task(request, options.task) if options.check else None
    folder = exports.claimed_folder(options.to)
    stages = Stages(run_options.on_progress)
    run_options = replace(run_options, model_options=request.loading(run_options.model_options))
    with exports.unpublished(folder) as part:
        with open_run(
            request.model, run_options, stages, task=checked, warns=options.check
        ) as opened:
            gated = opened.model
            request.require_same_weights(gated)
            names = request.names(gated)
            origin, means = Origin.of(gated), None
            if Ablation(request.ablation.kind).needs_donors:
                stages.enter("averaging the outputs that are replaced")
                means = exports.mean_outputs(opened, names, request, options.items)
            stages.enter(f"writing the {kind}")
            exports.write_form(request, gated, names, part, origin, means)
            stages.enter("running the ablated model")
            prompts = exports.prompt_tokens(gated.tokenizer, gated.vocabulary)
            scale = request.ablation.scale
            ablated_answers = exports.ablated_answers(gated, names, scale, prompts, means=means)
            benchmark, score = None, 0.0
            if checked is not None:
                stages.enter("scoring the ablated model")
                benchmark, score = exports.ablated_score(opened, names, scale, checked)
            info, tokenizer = model_info(gated), gated.tokenizer
        del gated, opened  # the memory of a model that was loaded here is free for the next one
        stages.enter("loading the export again")
        reloaded = exports.reload(kind, part, origin)
        export_answers, scored = exports.answers(reloaded, prompts), None
        same = exports.compare_answers(
            ablated_answers, export_answers, dtype=info.dtype, libraries=exports.LIBRARIES[kind]
        )
        if benchmark is not None:
            stages.enter("scoring the export with lm-eval")
            hf = exports.harness_score(
                reloaded, tokenizer, benchmark, options=run_options.task_options
            )
            scored = exports.compare_scores(benchmark, score, hf, dtype=info.dtype)
        done = Export(
            form=kind, model=info, base=BaseModel(request.base_name, origin.revision, info.dtype),
            components=names, ablation=request.ablation, held_out=request.held_out(names),
            files={}, reloaded=same, scored=scored, command=request.call(names),
        )  # fmt: skip
        done = exports.publish(done, part, folder)
    return done
