"""Writes an export in its form, and loads it again as its user does, with other libraries only."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import torch

from broca.engine import Ablation
from broca.errors import BadInput, UnsupportedModel
from broca.exports.adapter import require_peft, write_adapter
from broca.exports.factors import factors_of
from broca.exports.head_list import FILE, SNIPPETS, head_list
from broca.exports.request import ExportRequest
from broca.exports.weights import Means, changed_tensors, without_adapters, write_weights
from broca.models import GatedModel, adapter_in, location_of
from broca.options import TaskOptions
from broca.results.export import Form
from broca.results.files import write_beside
from broca.results.localization import Localization
from broca.runs.run import Run

LIBRARIES: dict[Form, tuple[str, ...]] = {
    "adapter": ("transformers", "peft"),
    "weights": ("transformers",),
    "heads": ("transformers",),
}
"""Libraries that load each form."""


@dataclass(frozen=True)
class Origin:
    """The source of a base model, from which it can be loaded without broca.

    Attributes:
        location: A folder or a hub id; None for a model in memory.
        revision: Commit on the hub.
        dtype: Number format of the loaded model.
        device: Device of the loaded model.
        copied: Copies a model in memory.
    """

    location: str | None
    revision: str | None
    dtype: str
    device: torch.device
    copied: Callable[[], Any] | None = None

    @classmethod
    def of(cls, model: GatedModel) -> Origin:
        """Returns the source of a model."""
        if model.source is None:
            return cls(None, None, model.dtype, model.device, lambda: copy.deepcopy(model.model))
        # the commit is that of the base; a folder or repository with an adapter is loaded as it is
        revision = None if model.adapter else model.revision
        return cls(location_of(model.source), revision, model.dtype, model.device)

    def load(self, checkpoint: Path | None = None) -> Any:
        """Loads the base, or a checkpoint in its number format and on its device."""
        from transformers import AutoModelForCausalLM

        if checkpoint is None and self.copied is not None:
            return self.copied().eval()
        place = {"revision": self.revision} if checkpoint is None else {}
        model = AutoModelForCausalLM.from_pretrained(
            str(checkpoint or self.location), dtype=getattr(torch, self.dtype), **place
        )
        return model.to(self.device).eval()


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
    """Writes the files of the export; the model is not changed.

    Args:
        request: The request, with form and ablation.
        model: The model.
        names: Names of the components.
        folder: Folder of the files.
        origin: Source of the base model.
        means: Mean outputs that replace those of the components, under mean ablation.

    Raises:
        UnsupportedModel: Other libraries cannot load the base of the export.
    """
    scale = request.ablation.scale
    location = None if origin.location is None else Path(origin.location)
    if request.form == "weights":
        plain = without_adapters(model)
        tensors = changed_tensors(plain, names, scale, means=means)
        base = location if location is not None and location.is_dir() else None
        write_weights(plain, tensors, folder, base=base)
        return
    adapter = None if location is None else adapter_in(location)
    reason = model.note
    if adapter is not None and adapter_in(Path(adapter.base).expanduser()) is not None:
        reason = "it is an adapter of an adapter"
    elif request.form == "adapter" and model.adapter.startswith("IA3 "):
        reason = "it has an (IA)^3 adapter, which another one would replace"
    if reason:
        raise UnsupportedModel(
            f"other libraries cannot load '{model.name}' for an export of `kind` {request.form}: "
            f"{reason}; use `kind` weights"
        )
    if request.form == "adapter":
        factors = factors_of(model, names, scale)
        write_adapter(factors, folder, base=origin.location, revision=origin.revision)
    else:
        content = head_list(model, names, scale, effects=request.effects)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_beside(folder / FILE, f"{text}\n")


def reload(form: Form, folder: Path, origin: Origin) -> Any:
    """Loads the exported model with other libraries.

    Args:
        form: Form of the export.
        folder: Folder of the export.
        origin: Source of the base model.
    """
    if form == "weights":
        return origin.load(folder)
    model = origin.load()
    if form == "adapter":
        with catch_warnings():
            simplefilter("ignore", FutureWarning)  # PEFT's own calls of transformers
            return require_peft().PeftModel.from_pretrained(model, str(folder)).eval()
    snippet: dict[str, Any] = {"open": lambda name: (folder / name).open(encoding="utf-8")}
    exec(SNIPPETS["hooks"], snippet)  # the code that the list gives its reader
    snippet["ablate"](model)
    return model
