"""Writes an export in its form, and moves the checked files to their folder."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from broca.engine import Ablation
from broca.errors import BadInput, UnsupportedModel
from broca.exports.adapter import write_adapter
from broca.exports.card import PICTURE, card
from broca.exports.factors import factors_of
from broca.exports.head_list import head_list, write_head_list
from broca.exports.patch import Patch, write_patch
from broca.exports.picture import picture
from broca.exports.reloading import Origin
from broca.exports.requests import ExportRequest
from broca.exports.weights import (
    Means,
    changed_tensors,
    shard_size,
    with_tensors,
    without_adapters,
    write_checkpoint,
)
from broca.models import GatedModel, adapter_in
from broca.options import TaskOptions
from broca.results.codec import encode
from broca.results.export import Export
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import Localization
from broca.runs.run import Run


def claimed_folder(to: str | Path) -> Path:
    """Creates the folder of the export.

    Raises:
        BadInput: The folder contains files that are not an export, or cannot be written.
    """
    folder = check_out_folder(to)
    if any(folder.iterdir()) and not (folder / Export.FILE).is_file():
        raise BadInput(f"`to` '{to}' holds other files: choose a new folder")
    return folder


@contextmanager
def unpublished(folder: Path) -> Iterator[Path]:
    """A context that writes an export beside its folder; if the disk is full, nothing stays of it.

    Yields:
        A temporary folder on the same disk.

    Raises:
        BadInput: The disk is full.
    """
    try:
        with TemporaryDirectory(prefix=".broca-export-", dir=folder.parent) as part:
            yield Path(part)
    except Exception as error:  # safetensors has errors of its own
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if not full and "No space left" not in str(error):
            raise
        if not (folder / Export.FILE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
        raise BadInput(
            f"`to` '{folder}' cannot be written: no space is left on its disk; free some, or "
            "choose a folder on another disk"
        ) from error


def mean_outputs(opened: Run, names: tuple[str, ...], request: ExportRequest, items: int) -> Means:
    """Returns what replaces the components' outputs, from the run's `locate` items.

    Args:
        opened: The model, and task options that differ from those of the run.
        names: Names of the components.
        request: The export, of a localization whose ablation replaces outputs.
        items: Number of items of the mean.

    Raises:
        BadInput: The result is not a localization.
    """
    result = request.result
    if not isinstance(result, Localization):
        raise BadInput(
            f"{request.ablation.kind} ablation needs the items of a run: give its folder"
        )
    changes = opened.options.task_options.to_dict()
    asked = replace(TaskOptions(**result.task_options), **changes)
    opened = replace(opened, options=replace(opened.options, task_options=asked))
    tasks = opened.claimed(
        result.task, others=[], items=items, seed=result.search.seed, searched="task"
    )
    ablation = Ablation(request.ablation.kind)
    run = opened.on(tasks, settings={}, ablation=ablation, donors=tasks.located)
    return run.stand_ins(opened.model.gated_parts(names).points)


def write_form(
    request: ExportRequest,
    model: GatedModel,
    names: tuple[str, ...],
    folder: Path,
    origin: Origin,
    means: Means | None = None,
) -> None:
    """Writes the files of the export.

    Args:
        request: The request, with form and ablation.
        model: The model, whose weights are restored.
        names: Names of the components.
        folder: Folder of the files.
        origin: Source of the base model.
        means: Mean outputs that replace those of the components, under mean ablation.

    Raises:
        UnsupportedModel: Other libraries cannot load the base of the export.
    """
    scale = request.ablation.scale
    base = None if origin.location is None else adapter_in(Path(origin.location))
    reason = model.note
    if base is not None and adapter_in(Path(base.base).expanduser()) is not None:
        reason = "it is an adapter of an adapter"
    elif request.form == "adapter" and model.adapter.startswith("IA3 "):
        reason = "it has an (IA)^3 adapter, which another one would replace"
    if reason and request.form != "weights":
        raise UnsupportedModel(
            f"other libraries cannot load '{model.name}' for an export of `kind` {request.form}: "
            f"{reason}; use `kind` weights"
        )
    if request.form == "adapter":
        factors = factors_of(model, names, scale)
        write_adapter(factors, folder, base=origin.location, revision=origin.revision)
        return
    if request.form == "heads":
        write_head_list(head_list(model, names, scale, effects=request.effects), folder)
        return
    plain = without_adapters(model)
    if request.form == "patch" and (model.adapter or plain is not model):
        raise UnsupportedModel(
            f"a patch holds weights of a model without an adapter, and '{model.name}' has one: use "
            "`kind` weights"
        )
    tensors = changed_tensors(plain, names, scale, means=means)
    if request.form == "patch":
        write_patch(Patch(model.fingerprint, model.dtype, tensors), folder)
        return
    location = None if origin.location is None else Path(origin.location)
    shards = None if location is None or not location.is_dir() else shard_size(location)
    with with_tensors(plain.model, tensors):
        write_checkpoint(plain.model, model.tokenizer, folder, shard_bytes=shards)


def publish(
    done: Export, part: Path, folder: Path, *, effects: Mapping[str, float] | None = None
) -> Export:
    """Moves the files of an export to their folder, with its picture, its card and its record.

    Files of an earlier export in the folder are removed.

    Args:
        done: The export, without its files.
        part: The folder in which the files were written.
        folder: The folder of the export, on the same disk.
        effects: Effect of each component by name, for the picture.

    Returns:
        The export with the sizes of its files, in bytes.
    """
    (part / PICTURE).write_bytes(picture(done.model, done.components, effects))
    (part / "README.md").unlink(missing_ok=True)  # PEFT's own card does not describe the ablation
    files = sorted(path for path in part.rglob("*") if path.is_file())
    done = replace(done, files={str(file.relative_to(part)): file.stat().st_size for file in files})
    write_beside(part / "README.md", card(done))
    write_beside(part / Export.FILE, encode(done))
    # all is written: what follows needs no space, so that a full disk leaves no half of an export
    for name in Export.read(folder).files if (folder / Export.FILE).is_file() else ():
        (folder / name).unlink(missing_ok=True)
    for name in (*done.files, "README.md", Export.FILE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (part / name).replace(folder / name)
    return done
