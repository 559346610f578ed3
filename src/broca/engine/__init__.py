"""Rows in, answers out: batches of mixed masks and items, decoding, memory."""

from broca.engine.engine import Engine, Progress

__all__ = ["Engine", "Progress"]
