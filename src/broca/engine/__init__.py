"""Runs rows on a model: batches of mixed masks and items, decoding, memory, shared work."""

from broca.engine.ablation import Ablation, donor_activations
from broca.engine.engine import Engine, Progress
from broca.engine.norms import OutputNorms
from broca.options import EngineOptions

__all__ = [
    "Ablation",
    "Engine",
    "EngineOptions",
    "OutputNorms",
    "Progress",
    "donor_activations",
]
