"""Pooled: all rows of a search enter one model of the worth of sets."""

from broca.searches.pooled.search import METHOD, Pooled

__all__ = ["METHOD", "Pooled"]
