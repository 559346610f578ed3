"""Hugging Face models, their components and gates; the only package that touches torch modules."""

from broca.models.adapters import adapter_in as adapter_in
from broca.models.choosing import KINDS, kinds_of
from broca.models.fingerprint import fingerprint as fingerprint
from broca.models.gated import GatedModel, GatedParts, greedy
from broca.models.gates import ActiveGates, GatePoint, Replacement, captured
from broca.models.loading import (
    SHIPPED_MODELS,
    as_gated,
    load,
    load_tokenizer,
    location_of,
    shipped_model_folder,
)
from broca.models.neurons import (
    NeuronBlock,
    Slice,
    last_token_replaced,
    neuron_blocks,
    neuron_slices,
)
from broca.models.selftest import require_self_test, self_test, sharing_checks
from broca.models.structure import (
    LayerParts,
    OutputProjection,
    Structure,
    find_structure,
    is_transposed,
)
from broca.models.structure import adapted_matrix as adapted_matrix
from broca.models.structure import text_config as text_config
from broca.results.checks import Check

__all__ = [
    "KINDS",
    "SHIPPED_MODELS",
    "ActiveGates",
    "Check",
    "GatePoint",
    "GatedModel",
    "GatedParts",
    "LayerParts",
    "NeuronBlock",
    "OutputProjection",
    "Replacement",
    "Slice",
    "Structure",
    "as_gated",
    "captured",
    "find_structure",
    "greedy",
    "is_transposed",
    "kinds_of",
    "last_token_replaced",
    "load",
    "load_tokenizer",
    "location_of",
    "neuron_blocks",
    "neuron_slices",
    "require_self_test",
    "self_test",
    "sharing_checks",
    "shipped_model_folder",
    "text_config",
]
