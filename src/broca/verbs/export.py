"""`export`: writes a model without some components in forms that other libraries load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from broca import exports
from broca.engine import Ablation
from broca.exports import Exportable, ExportRequest, Origin
from broca.models import GatedModel
from broca.options import RunOptions, takes_options, without
from broca.results.codec import encode
from broca.results.export import BaseModel, Export, Form
from broca.results.files import write_beside
from broca.runs.progress import Stages
from broca.runs.provenance import model_info
from broca.runs.setup import open_session
from broca.tasks import Task


@takes_options
def export(
    model: str | Path | GatedModel | Exportable,
    to: str | Path,
    *,
    heads: str | Sequence[str] | Exportable | None = None,
    kind: Form = "adapter",
    scale: float | None = None,
    check: bool = False,
    task: str | Task | None = None,
    items: int = 100,
    push: str | None = None,
    private: bool = False,
    run_options: Annotated[RunOptions, without("ablation_options")],
) -> Export:
    """Exports a model without some components, and checks the export with other libraries.

    Args:
        model: A shipped model, a local folder, a hub id, what `broca.load` returned, or a result or
            the folder of a run, which stand for their model.
        to: Folder for the export; a new folder, or the folder of an earlier export.
        heads: Components, as names joined by `+`, a list of names, a published list or a result; by
            default those of `model`, which is a result then.
        kind: `adapter` (PEFT), `weights` (a checkpoint), `heads` (a list) or `patch` (the changed
            tensors, for `broca.apply`).
        scale: Factor of the components' outputs; by default that of the run, else 0.
        check: Whether to compare lm-eval's score of the export with that of broca's ablated model.
        task: The task of `check`; by default that of the run.
        items: Under mean ablation, the number of the run's items over which outputs are averaged.
        push: Id of the hub repository that receives the export.
        private: Whether a new repository is private.

    Returns:
        A record of the files and the checks; the folder also contains it, and a model card.

    Raises:
        BrocaError: Bad input, or the ablation cannot be exported exactly, in one line that says
            what to do.
        SelfTestFailed: The export does not equal the ablated model; its files are removed.
    """
    request = ExportRequest.of(model, heads, kind, scale)
    if kind == "adapter":
        exports.require_peft()
    checked = exports.checked_task(request, task) if check else None
    folder = exports.claimed_folder(to)
    stages = Stages(run_options.on_progress)
    run_options = replace(run_options, model_options=request.loading(run_options.model_options))
    with exports.unpublished(folder) as part:
        with open_session(request.model, run_options, stages, task=checked, warns=check) as opened:
            gated = opened.model
            request.require_same_weights(gated)
            names = request.names(gated)
            origin, means = Origin.of(gated), None
            if Ablation(request.ablation.kind).needs_donors:
                stages.enter("averaging the outputs that are replaced")
                means = exports.mean_outputs(opened, names, request, items)
            stages.enter(f"writing the {kind}")
            exports.write_form(request, gated, names, part, origin, means)
            stages.enter("running the ablated model")
            prompts = exports.prompt_tokens(gated.tokenizer, gated.vocabulary)
            scale = request.ablation.scale
            ablated_answers = exports.ablated_answers(gated, names, scale, prompts, means=means)
            benchmark, score = None, 0.0
            if checked is not None:
                stages.enter("scoring the ablated model")
                benchmark = exports.checked_benchmark(opened, checked)
                score = exports.ablated_score(opened, names, scale, benchmark)
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
        done = exports.publish(done, part, folder, effects=request.effects)
    if push is not None:
        stages.enter("uploading the export to the hub")
        done = replace(done, pushed=exports.upload(folder, push, private=private))
        write_beside(folder / Export.FILE, encode(done))
    return done
