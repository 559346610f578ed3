"""`apply`: writes a whole model from a patch and the model that it was made for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from broca.errors import BadInput
from broca.exports import read_patch, shard_size, with_tensors, write_checkpoint
from broca.models import GatedModel, location_of
from broca.options import ModelOptions, takes_options
from broca.results.files import check_out_folder
from broca.runs.progress import Report, Stages
from broca.runs.setup import model_in_use


@takes_options
def apply(
    patch: str | Path,
    model: str | GatedModel,
    to: str | Path,
    *,
    on_progress: Report | None = None,
    model_options: ModelOptions,
) -> Path:
    """Writes the checkpoint of a model with the tensors of a patch.

    Args:
        patch: The folder that `broca.export` with `kind` patch wrote, or its file.
        model: The model that the patch was made for: a shipped model, a local folder, a hub id, or
            what `broca.load` returned.
        to: New folder for the checkpoint.
        on_progress: Receives the current stage and the progress of the run.

    Returns:
        The folder.

    Raises:
        BadInput: The patch belongs to other weights, or a folder cannot be used.
    """
    loaded_patch = read_patch(Path(patch).expanduser())
    folder = check_out_folder(to)
    if any(folder.iterdir()):
        raise BadInput(f"`to` '{to}' holds other files: choose a new folder")
    stages = Stages(on_progress)
    options = replace(model_options, dtype=loaded_patch.dtype)
    with model_in_use(model, options, stages) as gated:
        if gated.fingerprint != loaded_patch.fingerprint:
            raise BadInput(
                f"the patch was made for other weights (fingerprint {loaded_patch.fingerprint}, "
                f"'{gated.name}' has {gated.fingerprint}): give the model that its card names"
            )
        stages.enter("writing the checkpoint")
        place = None if gated.source is None else Path(location_of(gated.source))
        shards = None if place is None or not place.is_dir() else shard_size(place)
        with with_tensors(gated.model, loaded_patch.tensors):
            write_checkpoint(gated.model, gated.tokenizer, folder, shard_bytes=shards)
    return folder
