"""Hugging Face model in, components and gates out: the only room that touches torch modules."""

from broca.models.gated import GatedModel
from broca.models.gates import ActiveGates, GatePoint, captured_inputs, gated
from broca.models.loading import SHIPPED_MODELS, load, shipped_model_folder
from broca.models.selftest import Check, require_self_test, self_test
from broca.models.structure import OutputProjection, Structure, find_structure, text_config

__all__ = [
    "SHIPPED_MODELS",
    "ActiveGates",
    "Check",
    "GatePoint",
    "GatedModel",
    "OutputProjection",
    "Structure",
    "captured_inputs",
    "find_structure",
    "gated",
    "load",
    "require_self_test",
    "self_test",
    "shipped_model_folder",
    "text_config",
]
