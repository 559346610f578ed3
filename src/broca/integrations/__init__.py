"""broca within other tools: lm-eval's models, experiment trackers, transformers' Trainer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.integrations.lm_eval import BrocaLM as BrocaLM
    from broca.integrations.tracking import Log as Log
    from broca.integrations.training import TrainerCallback as TrainerCallback

_HOME = {"BrocaLM": "lm_eval", "Log": "tracking", "TrainerCallback": "training"}
"""The module of each public name, loaded on first use."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca.integrations' has no attribute '{name}'")
    return getattr(import_module(f"broca.integrations.{_HOME[name]}"), name)
