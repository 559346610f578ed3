"""Rows in, answers out: batches of mixed masks and items, decoding, memory, shared work."""

from broca.engine.engine import Engine, Progress
from broca.engine.work import EngineOptions

__all__ = ["Engine", "EngineOptions", "Progress"]
