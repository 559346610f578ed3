"""Loads an export with other libraries only, like its user."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import torch

from broca.exports.adapter import require_peft
from broca.exports.head_list import FILE as HEADS
from broca.exports.head_list import HOOKS
from broca.exports.patch import FILE as PATCH
from broca.models import GatedModel, location_of
from broca.results.export import Form


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

    def load(self) -> Any:
        """Loads the base model with transformers only."""
        if self.location is None:
            assert self.copied is not None
            return self.copied().eval()
        return self.load_folder(self.location, revision=self.revision)

    def load_folder(self, location: str | Path, **options: Any) -> Any:
        """Loads a checkpoint in the number format and on the device of the base."""
        from transformers import AutoModelForCausalLM

        dtype = getattr(torch, self.dtype)
        model = AutoModelForCausalLM.from_pretrained(str(location), dtype=dtype, **options)
        return model.to(self.device).eval()


LIBRARIES: dict[Form, tuple[str, ...]] = {
    "adapter": ("transformers", "peft"),
    "weights": ("transformers",),
    "patch": ("transformers", "safetensors"),
    "heads": ("transformers",),
}
"""Libraries that load each form."""


def reload(form: Form, folder: Path, origin: Origin) -> Any:
    """Loads the exported model with other libraries.

    Args:
        form: Form of the export.
        folder: Folder of the export.
        origin: Source of the base model.
    """
    if form == "weights":
        return origin.load_folder(folder)
    model = origin.load()
    if form == "adapter":
        with catch_warnings():
            simplefilter("ignore", FutureWarning)  # PEFT's own calls of transformers
            return require_peft().PeftModel.from_pretrained(model, str(folder)).eval()
    if form == "patch":
        from safetensors.torch import load_file

        model.load_state_dict(load_file(folder / PATCH), strict=False)
        return model
    snippet: dict[str, Any] = {"open": lambda name: (folder / name).open(encoding="utf-8")}
    assert HEADS in HOOKS
    exec(HOOKS, snippet)  # the code that the list gives its reader
    snippet["ablate"](model)
    return model
