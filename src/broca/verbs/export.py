"""`export`: writes a model without some components in forms that other libraries load."""

from dataclasses import replace

from broca.errors import BadInput
from broca.exports import check, forms
from broca.exports import folder as folders
from broca.exports.request import ExportRequest
from broca.models import require_peft
from broca.options import ExportOptions, RunOptions, verb
from broca.results.export import BaseModel, Export
from broca.results.files import check_out_folder
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
    request = ExportRequest.of(options.target, options.heads, kind, options.scale, options.items)
    if kind == "adapter":
        require_peft()
    given = [] if options.task is None else ["task"]
    if request.ablation.kind == "zero":  # else they say how the items of the mean are asked
        given += run_options.task_options.to_dict()
    if given and not options.check:
        raise BadInput(f"`{given[0]}` is for what `check` scores the export on: give both")
    checked = request.checked_task(options.task) if options.check else None
    folder = check_out_folder(options.to)
    others = [path for path in folder.iterdir() if not path.name.startswith(folders.PART)]
    holds = "other files" if others and not (folder / Export.FILE).is_file() else ""
    if request.lies_in(folder):
        holds = "the model itself"
    if holds:
        raise BadInput(f"`to` '{options.to}' holds {holds}: choose a new folder")
    stages = Stages(run_options.on_progress)
    asked = request.asked(run_options.task_options, options.task)
    loading = request.loading(run_options.model_options)
    run_options = replace(run_options, task_options=asked, model_options=loading)
    with folders.unpublished(folder) as part:
        with open_run(
            request.model, run_options, stages, task=checked, warns=options.check
        ) as opened:
            gated = opened.model
            request.require_same_weights(gated)
            names, scale = request.names(gated), request.ablation.scale
            origin = check.Origin.of(gated)
            means = request.means(opened, names)
            stages.enter(f"writing the {kind}")
            base, revision = origin.location, origin.revision
            forms.write_form(request, gated, names, part, base=base, revision=revision, means=means)
            stages.enter("running the ablated model")
            prompts = check.prompt_tokens(gated.tokenizer, gated.vocabulary, gated.max_length)
            steps = min(check.NEW_TOKENS, gated.max_length - 1)
            parts = gated.gated_parts(names, scale)
            ablated, rounding = check.ablated_answers(gated, parts, means, prompts, steps)
            benchmark, score = None, 0.0
            if checked is not None:
                stages.enter("scoring the ablated model")
                benchmark, score = check.ablated_score(opened, names, scale, checked)
            info, tokenizer = model_info(gated), gated.tokenizer
        del gated, opened  # the memory of a model that was loaded here is free for the next one
        stages.enter("loading the export again")
        reloaded = origin.load(part, kind)
        answers, scored = check.answers(reloaded, prompts, steps), None
        same = check.compare_answers(
            ablated, answers, dtype=info.dtype, form=kind, rounding=rounding
        )
        if benchmark is not None:
            stages.enter("scoring the export with lm-eval")
            scored = check.compare_scores(
                reloaded, tokenizer, benchmark, score,
                dtype=info.dtype, options=run_options.task_options,
            )  # fmt: skip
        done = Export(
            form=kind, model=info, base=BaseModel(request.base_name, revision, info.dtype),
            components=names, ablation=request.ablation,
            held_out=request.held_out(names, run_options.task_options),
            files={}, reloaded=same, scored=scored, command=request.call(names),
        )  # fmt: skip
        done = folders.publish(done, part, folder)
    return done
